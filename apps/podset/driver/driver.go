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

// Driver is the sets' contact with the world.
type Driver struct {
	client client.Client
	live   client.Reader
	hands  hands
	// accepted spares a dry run in each turn of a rollout.
	accepted *accepted
	now      func() time.Time
}

// New returns a driver that reads through the client, and asks the live reader before
// it makes or deletes pods.
func New(c client.Client, live client.Reader) lifecycle.Driver[*appv1.PodSet, podset.World] {
	return Driver{client: c, live: live, hands: make(hands, most), accepted: &accepted{of: map[types.UID]acceptance{}}, now: time.Now}
}
