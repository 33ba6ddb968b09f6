# The operator's image, for clusters that pull from a registry: one static binary, not root, nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY api/go.mod api/go.sum api/
RUN go mod download
COPY . .
# The flags make it smaller: see the Makefile.
RUN CGO_ENABLED=0 go build -tags grpcnotrace,fieldsv1string -gcflags k8s.io/api/...=-l -trimpath -ldflags "-s -w" -o /governor ./cmd/governor

FROM scratch
LABEL org.opencontainers.image.title=governor org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /governor /governor
USER 65532:65532
ENTRYPOINT ["/governor"]
