package driver

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/dryrun"
	"github.com/governor-dev/governor/lifecycle"
)

// applySet applies the member's StatefulSet, unless an admission webhook or policy would give it another release of
// etcd: its pods would run with that release, and etcd cannot read the data of a later minor release.
func (d *Driver) applySet(ctx context.Context, want *etcdv1.EtcdCluster, declared *appsv1.StatefulSet) error {
	err := d.applyOnce(ctx, want, declared, client.DryRunAll)
	if err != nil && !dryrun.Unsupported(err) { // a webhook may decide only about the real write
		return err
	}
	return d.applyOnce(ctx, want, declared)
}

// applyOnce compares what the API server answers. No pod is deleted after an error.
func (d *Driver) applyOnce(ctx context.Context, want *etcdv1.EtcdCluster, declared *appsv1.StatefulSet, options ...client.ApplyOption) error {
	answer, err := apply.Answer(ctx, d.client, d.live, want, declared, options...)
	if err != nil {
		return err
	}
	stored := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, stored); err != nil {
		return fmt.Errorf("cannot read the API server's answer about the StatefulSet %q: %w", declared.Name, err)
	}
	return overridden(declared, stored)
}

func overridden(declared, stored *appsv1.StatefulSet) error {
	ours, theirs := imageOf(declared), imageOf(stored)
	if !otherRelease(ours, theirs) {
		return nil
	}
	return &lifecycle.DecisionError{Decision: lifecycle.Block("StatefulSetOverridden", fmt.Sprintf(
		"%s does not start or restart: an admission webhook or policy changes the image of its StatefulSet from %s to %s. Correct the webhook or policy.",
		declared.Name, ours, theirs))}
}

func imageOf(set *appsv1.StatefulSet) string {
	all := set.Spec.Template.Spec.Containers
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == etcd.Name })
	if i < 0 {
		return ""
	}
	return all[i].Image
}

// otherRelease compares the tags: a webhook may replace the registry by a mirror, or the tag by a digest.
func otherRelease(a, b string) bool {
	one, other := lifecycle.ImageTag(a), lifecycle.ImageTag(b)
	return one != "" && other != "" && one != other
}
