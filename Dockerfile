# The image has only the proxy, without a compiler or Kafka, and runs as an unprivileged user. See deploy/README.md.

FROM python:3.12.15-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY requirements/proxy.txt requirements/
COPY proxy proxy
COPY bench bench
RUN python -m venv --without-pip /opt/quota-proxy \
    && pip --python /opt/quota-proxy/bin/python install --no-cache-dir --require-hashes -r requirements/proxy.txt
# As `make profiled`: the rings are compiled to count which branches a load takes, and again by these counts. The build
# fails if they cannot be compiled.
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" \
        > build-requires.txt \
    && pip install --no-cache-dir -r build-requires.txt \
    && QUOTA_PROXY_BUILD=instrumented python setup.py --quiet build_ext --inplace \
    && PYTHONPATH=/src /opt/quota-proxy/bin/python -m bench.training \
    && find proxy -name '*.so' -delete \
    && QUOTA_PROXY_BUILD=profiled pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .
# The wheel's script quota-pipeline needs the package pipeline, which is not here.
RUN pip --python /opt/quota-proxy/bin/python install --no-cache-dir --no-deps /wheels/*.whl \
    && rm /opt/quota-proxy/bin/quota-pipeline

FROM python:3.12.15-slim-bookworm
LABEL org.opencontainers.image.title="quota-proxy" \
    org.opencontainers.image.description="A proxy that enforces quotas for Apache Kafka" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/quota-proxy /opt/quota-proxy
ENV PATH=/opt/quota-proxy/bin:$PATH PYTHONDONTWRITEBYTECODE=1
# Fail the build if the image lacks the compiled rings.
# hadolint ignore=DL4006
RUN quota-proxy version | grep -q compiled
USER 10001:10001
# The default ports: bootstrap, the first brokers, admin.
EXPOSE 29092 29100-29109 9644
# The check uses the default admin port. With another admin.port, configure a health check for the container.
# bash does it without starting a Python, which takes longer than the check.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9644 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["quota-proxy"]
CMD ["run", "--config", "/etc/quota-proxy/quota-proxy.yaml"]
