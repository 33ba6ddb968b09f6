package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// edits caches the comparison for each generation of a StatefulSet: rendering and comparing one
// costs more than the rest of an observation.
type edits struct {
	mu    sync.Mutex
	found map[editKey]edit
}

type edit struct {
	set, cluster        int64 // generations
	exposure            etcd.Exposure
	legacy, unknownKeys bool
	lacksSelectorLabels bool   // labels do not change the generation
	fails               bool   // the pod cannot run, perhaps because of an edit
	fields              string // joined, as are the harmless ones
	harmless            string
	// additions are the fields that other managers added. They are read from the API server
	// once the member's pod cannot run; searched reports that they were.
	additions string
	searched  bool
	// applied reports that the declaration was applied to this generation without creating a
	// new one: an admission webhook keeps the fields unchanged.
	applied bool
}

// editKey is a StatefulSet and the revision of the spec that it is compared with: while a change is held, both that and the
// spec that worked last.
type editKey struct {
	set      types.UID
	revision string
}

func newEdits() *edits { return &edits{found: map[editKey]edit{}} }

func (e *edits) get(set editKey) edit {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.found[set]
}

func (e *edits) put(set editKey, found edit) {
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
	for key, found := range e.found {
		if key.set == set.UID && found.set == set.Generation {
			found.applied = true
			e.found[key] = found
		}
	}
}

// findEdits adds the fields that were changed in the members' StatefulSets.
func (d *Driver) findEdits(ctx context.Context, want *etcdv1.EtcdCluster, v view) error {
	for i := range v.world.Members {
		m := &v.world.Members[i]
		set := v.parts.sets[m.Name]
		if set == nil {
			continue
		}
		found, err := d.editOf(ctx, want, v.world, *m, set)
		if err != nil {
			return err
		}
		if !found.applied {
			m.Set.Edited = joined(found.fields, found.additions)
		}
		if found.harmless != "" && !found.applied {
			m.Set.Harmless = strings.Split(found.harmless, ", ")
		}
	}
	return nil
}

// editOf compares a generation of the StatefulSet once, and searches it for additions once.
func (d *Driver) editOf(ctx context.Context, want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, set *appsv1.StatefulSet) (edit, error) {
	now := edit{set: set.Generation, cluster: want.Generation, exposure: m.Set.Exposure, legacy: seen.LegacyKeys, unknownKeys: seen.UnknownKeys, lacksSelectorLabels: lacksSelectorLabels(set)}
	key := editKey{set.UID, etcd.Revision(want)}
	known := d.edits.get(key)
	now.fields, now.harmless, now.applied, now.additions, now.searched = known.fields, known.harmless, known.applied, known.additions, known.searched
	now.fails = m.Pod.Trouble != lifecycle.PodProblemNone
	if now != known {
		fields, err := d.edited(want, seen, m, set)
		if err != nil {
			return now, err
		}
		harmless, needed := partition(fields, func(field string) bool { return isHarmless(field) && !now.fails })
		now.fields, now.harmless, now.applied, now.additions, now.searched = strings.Join(needed, ", "), strings.Join(harmless, ", "), false, "", false
	}
	if !now.searched && mayHaveAdditions(want, m, set) {
		added, _, err := d.additions(ctx, want, seen, m, set)
		if err != nil {
			return now, err
		}
		now.additions, now.searched = strings.Join(added, ", "), true
		now.applied = now.applied && len(added) == 0
	}
	if now != known {
		d.edits.put(key, now)
	}
	return now, nil
}

// harmlessFields are prefixes of fields on which a member's service and data do not depend, also
// after its pod restarted with them. A pod that cannot run with them gets the declared ones.
var harmlessFields = []string{
	"spec.revisionHistoryLimit", "spec.template.metadata.annotations.", "spec.template.spec.priorityClassName",
	`spec.template.spec.containers[name="` + etcd.Name + `"].resources`,
}

func isHarmless(field string) bool {
	own := []string{etcd.AnnotationRevision, etcd.AnnotationVersion, etcd.AnnotationSnapshots}
	return slices.ContainsFunc(harmlessFields, func(prefix string) bool { return strings.HasPrefix(field, prefix) }) &&
		!slices.ContainsFunc(own, func(note string) bool { return strings.HasSuffix(field, "annotations."+note) })
}

// partition separates those that are from those that are not.
func partition(all []string, is func(string) bool) (those, others []string) {
	for _, one := range all {
		if is(one) {
			those = append(those, one)
		} else {
			others = append(others, one)
		}
	}
	return those, others
}

func joined(lists ...string) string {
	return strings.Join(slices.DeleteFunc(lists, func(l string) bool { return l == "" }), ", ")
}

func lacksSelectorLabels(set *appsv1.StatefulSet) bool {
	return set.Spec.Selector != nil && lacksLabels(set.Spec.Selector.MatchLabels, set)
}

// edited compares the StatefulSet with its declaration. A StatefulSet of another revision gets
// its template at its next restart, so only its replicas are compared.
func (d *Driver) edited(want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, set *appsv1.StatefulSet) ([]string, error) {
	declared := declaration(want, seen, m, set)
	if declared != nil {
		return d.comparer.Differs(want, declared, set)
	}
	if set.Spec.Replicas != nil && *set.Spec.Replicas != 1 {
		return []string{"spec.replicas"}, nil
	}
	return nil, nil
}

// declaration returns the declared StatefulSet; nil if the member still has another revision, or
// if another rule must first make the declaration valid.
func declaration(want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, set *appsv1.StatefulSet) *appsv1.StatefulSet {
	spec, _, _ := strings.Cut(m.Set.Revision, ".")
	if spec != etcd.Revision(want) || m.Set.Exposure == etcd.Unlabelled || seen.UnknownKeys {
		return nil
	}
	declared, err := etcd.StatefulSet(want, seen, lifecycle.Step{Target: m.Name, Args: map[string]string{
		etcd.ArgVersion: m.Set.Version, etcd.ArgRevision: m.Set.Revision, etcd.ArgExposed: string(m.Set.Exposure),
		etcd.ArgSnapshots: string(m.Set.Snapshots),
	}})
	if err != nil {
		return nil
	}
	keepQuota(want, declared, set)
	return declared
}

// restoreSet applies the declaration, once for each generation: an apply that has no effect, or
// is rejected by a policy, must not delay other repairs. It creates no volume, because the
// member has one.
func (d *Driver) restoreSet(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	set, err := etcd.StatefulSet(want, v.world, s)
	if err != nil {
		return err
	}
	err = d.applySet(ctx, want, set)
	seen := v.parts.sets[s.Target]
	if seen == nil {
		return err
	}
	if err == nil && d.edits.get(editKey{seen.UID, etcd.Revision(want)}).additions != "" {
		err = d.removeAdditions(ctx, want, v.world, s.Target, seen)
	}
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		d.edits.applied(seen)
	}
	return err
}

// label restores the labels of the member's pod or claim.
func (d *Driver) label(ctx context.Context, want *etcdv1.EtcdCluster, p parts, s lifecycle.Step) error {
	if s.Name == etcd.LabelPod {
		return d.labelPod(ctx, p, s.Target)
	}
	return d.labelVolume(ctx, want, p, s.Target)
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
