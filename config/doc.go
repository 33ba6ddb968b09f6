// Package config has the manifests that install Governor. The custom resource
// definitions and the roles are generated from the code, and dist/install.yaml
// from all of them; go generate ./config renews them.
package config

//go:generate go tool -modfile=../tools/gen/go.mod controller-gen object paths=github.com/governor-dev/governor/api/...
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=1000 paths=github.com/governor-dev/governor/api/cache/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=200 paths=github.com/governor-dev/governor/api/app/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=300 paths=github.com/governor-dev/governor/api/etcd/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=1000 paths=github.com/governor-dev/governor/api/governor/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen rbac:roleName=governor paths=../cmd/governor output:rbac:dir=rbac
//go:generate go run ./bundle -out ../dist/install.yaml
//go:generate go tool -modfile=../tools/docs/go.mod crd-ref-docs --source-path=../api --config=reference/api.yaml --renderer=markdown --output-path=../docs/reference/api.md --log-level=ERROR
//go:generate go run ./reference -out ../docs/reference/names.md
