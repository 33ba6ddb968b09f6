// Package kube has what drivers share: how they reach Kubernetes. Its subpackages observe and write.
package kube

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Access is what the engine gives the driver of an application. A driver that also implements
// io.Closer is closed when the application ends.
type Access struct {
	// Client reads from the application's cache, records what it writes, and labels what it creates.
	Client client.Client
	// Live reads from the API server what is not in that cache.
	Live client.Reader
	// Config and HTTP reach the API server as the operator, for what Client cannot do, such as a
	// command in a container. HTTP has the operator's credentials: do not use it for other servers.
	Config *rest.Config
	HTTP   *http.Client
	// Now is the operator's clock.
	Now func() time.Time
}
