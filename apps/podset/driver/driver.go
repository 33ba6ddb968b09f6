// Package driver observes and makes the pods of sets.
package driver

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/kube/dryrun"
	"github.com/governor-dev/governor/lifecycle"
)

// Driver implements lifecycle.Driver for pod sets.
type Driver struct {
	client   client.Client
	live     client.Reader
	requests requestLimit
	// templates avoids a dry run in each reconcile of a rollout.
	templates *dryrun.Templates
	now       func() time.Time
}

// New returns a driver that reads through the client, and checks with the live reader
// before it creates or deletes pods.
func New(a kube.Access) lifecycle.Driver[*appv1.PodSet, podset.World] {
	return Driver{client: a.Client, live: a.Live, requests: make(requestLimit, maxRequests), templates: dryrun.New(a.Now), now: a.Now}
}
