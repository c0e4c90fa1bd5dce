# docker build -t decal . && docker run --rm -v "$PWD:/data" decal recommend preds.csv --threshold 0.3
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile "$(echo /wheels/decal-*.whl)[plot]" \
    && useradd --create-home --uid 1000 decal
USER 1000
WORKDIR /data
ENTRYPOINT ["decal"]
CMD ["--help"]
