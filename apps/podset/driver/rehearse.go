package driver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

// acceptedFor is for how long an accepted template is not tried again.
const acceptedFor = time.Minute

// accepted remembers the template of each set that the API server accepted last.
type accepted struct {
	mu sync.Mutex
	of map[types.UID]acceptance
}

type acceptance struct {
	template string
	at       time.Time
}

func (a *accepted) knows(set types.UID, template string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.of[set]
	return known.template == template && now.Sub(known.at) < acceptedFor
}

func (a *accepted) learn(set types.UID, template string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, known := range a.of {
		if now.Sub(known.at) >= acceptedFor {
			delete(a.of, other)
		}
	}
	a.of[set] = acceptance{template, now}
}

// refusal asks the API server for a dry run of a pod of the present template, while there
// are pods of another one. A quota is no refusal: a pod that goes makes room.
func (d Driver) refusal(ctx context.Context, obj *appv1.PodSet, seen podset.World) (string, error) {
	template := podset.Fingerprint(obj)
	if len(seen.Outdated(template)) == 0 || d.accepted.knows(obj.UID, template, d.now()) {
		return "", nil
	}
	births := podset.NewPods(obj.Name, seen, 1)
	err := d.client.Create(ctx, podset.PodFor(obj, template, births[0].Name, 0), client.DryRunAll)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), exceedsQuota(err):
		d.accepted.learn(obj.UID, template, d.now())
		return "", nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return strings.TrimSuffix(err.Error(), "."), nil
	}
	return "", fmt.Errorf("cannot try a pod of the present template: %w", err)
}

func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
