// Package driver observes and makes the pods of sets.
package driver

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// Driver implements lifecycle.Driver for pod sets.
type Driver struct {
	client   client.Client
	live     client.Reader
	requests requestLimit
	// accepted avoids a dry run in each reconcile of a rollout.
	accepted *acceptedCache
	now      func() time.Time
}

// New returns a driver that reads through the client, and checks with the live reader
// before it creates or deletes pods.
func New(c client.Client, live client.Reader) lifecycle.Driver[*appv1.PodSet, podset.World] {
	return Driver{client: c, live: live, requests: make(requestLimit, maxRequests), accepted: &acceptedCache{entries: map[types.UID]acceptedTemplate{}}, now: time.Now}
}
