# The server, alone in its image: no shell, no package manager, no root.
#
#   docker build -t coppice .
#   docker run -d -p 127.0.0.1:7717:7717 -v coppice:/data coppice
#
# docs/install.md has the rest.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
      -ldflags="-s -w -X github.com/coppice-dev/coppice/cmd/coppice/internal/cli.linkedVersion=$VERSION" \
      -o /root/image/coppice ./cmd/coppice
# Beside itself the program needs the certificates of those it talks to, the time zones,
# a place for temporary files, and one for all that it keeps, which alone is its own.
RUN cd /root/image && mkdir -p tmp etc/ssl/certs /root/data && chmod 1777 tmp && \
    cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/ && \
    cp "$(go env GOROOT)/lib/time/zoneinfo.zip" .

FROM scratch
COPY --from=build --chown=0:0 /root/image/ /
COPY --from=build --chown=65532:65532 /root/data/ /data/
ENV HOME=/data COPPICE_HOME=/data/sessions ZONEINFO=/zoneinfo.zip
USER 65532:65532
VOLUME /data
EXPOSE 7717
ENTRYPOINT ["/coppice"]
# Outside of this machine, put a proxy with TLS in front, or give --tls-cert and --tls-key.
CMD ["serve", "--addr", "0.0.0.0:7717", "--behind-proxy"]
