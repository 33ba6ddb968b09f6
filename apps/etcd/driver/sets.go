package driver

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// edits caches the comparison for each generation of a StatefulSet: rendering and comparing one
// costs more than the rest of an observation.
type edits struct {
	mu    sync.Mutex
	found map[types.UID]edit
}

type edit struct {
	set, cluster        int64 // generations
	exposure            etcd.Exposure
	legacy              bool
	lacksSelectorLabels bool // labels do not change the generation
	fields              string
	// applied reports that the declaration was applied to this generation without creating a
	// new one: an admission webhook keeps the fields unchanged.
	applied bool
}

func newEdits() *edits { return &edits{found: map[types.UID]edit{}} }

func (e *edits) get(set types.UID) edit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.found[set]
}

func (e *edits) put(set types.UID, found edit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	const most = 10_000 // limits the memory; dropped entries are compared again
	if len(e.found) >= most {
		clear(e.found)
	}
	e.found[set] = found
}

// applied records that the declaration was applied to this generation.
func (e *edits) applied(set *appsv1.StatefulSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.found[set.UID]; found.set == set.Generation {
		found.applied = true
		e.found[set.UID] = found
	}
}

// findEdits adds the fields that were changed in the members' StatefulSets.
func (d *Driver) findEdits(want *etcdv1.EtcdCluster, v view) error {
	for i := range v.world.Members {
		m := &v.world.Members[i]
		set := v.parts.sets[m.Name]
		if set == nil {
			continue
		}
		now := edit{set: set.Generation, cluster: want.Generation, exposure: m.Set.Exposure, legacy: v.world.LegacyKeys, lacksSelectorLabels: lacksSelectorLabels(set)}
		known := d.edits.get(set.UID)
		now.fields, now.applied = known.fields, known.applied
		if now != known {
			now.applied = false
			fields, err := d.edited(want, v.world, *m, set)
			if err != nil {
				return err
			}
			now.fields = strings.Join(fields, ", ")
			d.edits.put(set.UID, now)
		}
		if m.Set.Edited = now.fields; now.applied {
			m.Set.Edited = ""
		}
	}
	return nil
}

func lacksSelectorLabels(set *appsv1.StatefulSet) bool {
	return set.Spec.Selector != nil && lacksLabels(set.Spec.Selector.MatchLabels, set)
}

// edited compares the StatefulSet with its declaration. A StatefulSet of another revision gets
// its template at its next restart, so only its replicas are compared.
func (d *Driver) edited(want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, set *appsv1.StatefulSet) ([]string, error) {
	spec, _, _ := strings.Cut(m.Set.Revision, ".")
	if spec != etcd.Revision(want) || m.Set.Exposure == etcd.Unlabelled || seen.Certificates != "" {
		if set.Spec.Replicas != nil && *set.Spec.Replicas != 1 {
			return []string{"spec.replicas"}, nil
		}
		return nil, nil
	}
	declared, err := etcd.StatefulSet(want, seen, lifecycle.Step{Target: m.Name, Args: map[string]string{
		etcd.ArgVersion: m.Set.Version, etcd.ArgRevision: m.Set.Revision, etcd.ArgExposed: string(m.Set.Exposure),
		etcd.ArgSnapshots: string(m.Set.Snapshots),
	}})
	if err != nil {
		return nil, nil //nolint:nilerr // another rule handles an invalid version
	}
	keepQuota(want, declared, set)
	return d.comparer.Differs(want, declared, set)
}

// restoreSet applies the declaration, once for each generation: an apply that has no effect, or
// is rejected by a policy, must not delay other repairs. It creates no volume, because the
// member has one.
func (d *Driver) restoreSet(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	set, err := etcd.StatefulSet(want, v.world, s)
	if err != nil {
		return err
	}
	err = apply.Object(ctx, d.client, d.live, want, set)
	if seen := v.parts.sets[s.Target]; seen != nil && (err == nil || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) {
		d.edits.applied(seen)
	}
	return err
}

// labelVolume restores the labels of the claim.
func (d *Driver) labelVolume(ctx context.Context, want *etcdv1.EtcdCluster, p parts, member string) error {
	seen := p.claims[member]
	if seen == nil {
		return &lifecycle.Deferred{Reason: "the claim no longer exists"}
	}
	claim := seen.DeepCopy()
	claim.Labels = labelled(claim.Labels, etcd.ClaimLabels(want, member))
	if err := d.client.Patch(ctx, claim, client.MergeFrom(seen)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot label the claim of %s: %w", member, err)
	}
	return nil
}

// labelPod restores the labels of the template on the pod.
func (d *Driver) labelPod(ctx context.Context, p parts, member string) error {
	seen, set := p.pods[member], p.sets[member]
	if seen == nil || set == nil {
		return &lifecycle.Deferred{Reason: "the pod no longer exists"}
	}
	pod := seen.DeepCopy()
	pod.Labels = labelled(pod.Labels, set.Spec.Template.Labels)
	if err := d.client.Patch(ctx, pod, client.MergeFrom(seen)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot label the pod of %s: %w", member, err)
	}
	return nil
}

// labelled adds labels.
func labelled(labels, add map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, add)
	return labels
}
