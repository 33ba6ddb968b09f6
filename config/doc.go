// Package config has the manifests that install Governor. The custom resource
// definitions and the roles are generated from the code, and dist/install.yaml
// from all of them; go generate ./config renews them.
package config

//go:generate go tool -modfile=../tools/gen/go.mod controller-gen object paths=../api/...
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=1000 paths=../api/cache/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=200 paths=../api/app/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=300 paths=../api/etcd/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen crd:maxDescLen=1000 paths=../api/governor/... output:crd:dir=crd
//go:generate go tool -modfile=../tools/gen/go.mod controller-gen rbac:roleName=governor paths=../cmd/governor output:rbac:dir=rbac
//go:generate go run ./bundle -out ../dist/install.yaml
