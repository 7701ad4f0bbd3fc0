# The proxy in a container. Conversations are in the volume, and stopping it waits until answers have ended:
#     docker build -t foveate .
#     docker run -p 127.0.0.1:8787:8787 -v foveate:/data --stop-timeout 310 -e FOVEATE_PROXY_TOKEN=... foveate
FROM python:3.13-slim

RUN useradd --create-home --uid 1000 foveate && mkdir /data && chown foveate /data
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir "/src[cli,proxy,inspect,prices,postgres,code,expand,tokens,zstd]" && rm -r /src

# A number, because Kubernetes cannot tell whether a name is root.
USER 1000
ENV FOVEATE_STORE=sqlite:////data/conversations.db
VOLUME /data
EXPOSE 8787
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/health', timeout=5)"]
ENTRYPOINT ["foveate"]
CMD ["proxy", "--host", "0.0.0.0", "--json-logs"]
