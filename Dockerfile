# The collector, and every other command of Cloakwork: docker build -t cloakwork . && docker run --rm cloakwork --help
FROM python:3.11.13-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --disable-pip-version-check --constraint constraints.txt --wheel-dir /wheels '.[all]'

FROM python:3.11.13-slim-bookworm
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --disable-pip-version-check --no-compile --no-index /wheels/*.whl
# compiled loops are kept with the data, because nothing else can be written
ENV HOME=/var/lib/cloakwork \
    MPLCONFIGDIR=/tmp \
    NUMBA_CACHE_DIR=/var/lib/cloakwork/cache \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
RUN install -d -o 10001 -g 10001 -m 700 /var/lib/cloakwork
USER 10001:10001
WORKDIR /var/lib/cloakwork
EXPOSE 8080
ENTRYPOINT ["cloakwork"]
CMD ["--help"]
