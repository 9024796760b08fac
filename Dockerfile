# syntax=docker/dockerfile:1
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings its own Node: development packages, the `node` package among them, stay out.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=7411 \
    SCROLLBACK_DATA=/data
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json openapi.yaml LICENSE README.md ./
COPY codec ./codec
COPY routes ./routes
COPY src ./src
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 7411
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node is process 1: it handles SIGTERM itself and finishes what is in flight.
STOPSIGNAL SIGTERM
CMD ["node", "src/cli/main.ts", "serve"]
