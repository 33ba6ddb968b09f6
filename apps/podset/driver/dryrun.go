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

// acceptedTTL is how long an accepted template needs no new dry run.
const acceptedTTL = time.Minute

// acceptedCache caches, per set, the template that the API server accepted last.
type acceptedCache struct {
	mu      sync.Mutex
	entries map[types.UID]acceptedTemplate
}

type acceptedTemplate struct {
	template string
	at       time.Time
}

func (a *acceptedCache) has(set types.UID, template string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.entries[set]
	return known.template == template && now.Sub(known.at) < acceptedTTL
}

func (a *acceptedCache) record(set types.UID, template string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, known := range a.entries {
		if now.Sub(known.at) >= acceptedTTL {
			delete(a.entries, other)
		}
	}
	a.entries[set] = acceptedTemplate{template, now}
}

// refusal runs a dry run of a pod of the present template while pods of another template
// exist. A quota is no refusal: a deleted pod frees quota.
func (d Driver) refusal(ctx context.Context, obj *appv1.PodSet, seen podset.World) (string, error) {
	template := podset.Fingerprint(obj)
	if len(seen.Outdated(template)) == 0 || d.accepted.has(obj.UID, template, d.now()) {
		return "", nil
	}
	pods := podset.NewPods(obj.Name, seen, 1)
	err := d.client.Create(ctx, podset.PodFor(obj, template, pods[0].Name, 0), client.DryRunAll)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), exceedsQuota(err):
		d.accepted.record(obj.UID, template, d.now())
		return "", nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return strings.TrimSuffix(err.Error(), "."), nil
	}
	return "", fmt.Errorf("cannot dry-run a pod of the present template: %w", err)
}

func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
