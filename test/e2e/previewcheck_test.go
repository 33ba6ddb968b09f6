package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/previewcheck"
)

// observer records the applied objects of the cluster.
func (c *cluster) observer() previewcheck.Observer {
	return previewcheck.Observer{
		Client: api, Namespace: c.key.Namespace, Instance: c.key.Name, App: etcd.Name, Kinds: []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			corev1.SchemeGroupVersion.WithKind("Secret"), policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
			networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		},
	}
}

func look(t *testing.T, o previewcheck.Observer) previewcheck.Snapshot {
	t.Helper()
	seen, err := o.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// late reports that a busy API server has not answered in the time of a preview, which then says what it lacks.
func late(r preview.Report) bool {
	return slices.ContainsFunc(r.Unknowns, func(what string) bool { return strings.Contains(what, "deadline") })
}

func complete(r preview.Report) bool { return r.Settles() && !late(r) }

// happened compares the preview with the actual objects.
func happened(t *testing.T, what string, report preview.Report, before, after previewcheck.Snapshot) {
	t.Helper()
	became, err := previewcheck.Changes(api.Scheme(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(became, previewcheck.Sorted(report.Resources)); diff != "" {
		t.Errorf("%s: the actual objects (-) differ from the preview (+): %s", what, diff)
	}
}

// stepped compares the preview with the actual steps.
func stepped(t *testing.T, what string, report preview.Report, entries []history.Entry) {
	t.Helper()
	if diff := cmp.Diff(taken(entries), inShort(report.Actions())); diff != "" {
		t.Errorf("%s: the actual steps (-) differ from the preview (+): %s", what, diff)
	}
}

// matchesPreview previews the edit, applies it, and compares.
func (c *cluster) matchesPreview(t *testing.T, what string, edit func(*etcdv1.EtcdClusterSpec)) {
	t.Helper()
	report := c.preview(t, edit)
	before, begun := look(t, c.observer()), len(c.history(t).Entries)
	c.Apply(t, edit)
	c.settled(t)
	if len(report.Actions()) == 0 && len(report.Resources) == 0 {
		t.Errorf("%s: the preview has no effect", what)
	}
	stepped(t, what, report, c.history(t).Entries[begun:])
	happened(t, what, report, before, look(t, c.observer()))
}

// TestEtcdChangesMatchPreview previews every kind of change of a real cluster, applies it, and compares steps and objects.
func TestEtcdChangesMatchPreview(t *testing.T) {
	c := formed(t, 3, version("3.5"))
	for _, change := range []struct {
		name string
		edit func(*etcdv1.EtcdClusterSpec)
	}{
		{"another release", version("3.6")},
		{"resources, which restart members", func(s *etcdv1.EtcdClusterSpec) {
			s.Pod.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		}},
		{"one member more", func(s *etcdv1.EtcdClusterSpec) { s.Size = 4 }},
		{"one member less, and a label", func(s *etcdv1.EtcdClusterSpec) {
			s.Size, s.Pod.Labels = 3, map[string]string{"team": "a"}
		}},
		{"a network policy", func(s *etcdv1.EtcdClusterSpec) { s.NetworkPolicy.Enabled = true }},
		{"none any more", func(s *etcdv1.EtcdClusterSpec) { s.NetworkPolicy.Enabled = false }},
		{"a single member", func(s *etcdv1.EtcdClusterSpec) { s.Size = 1 }},
	} {
		c.matchesPreview(t, change.name, change.edit)
	}
	if err := c.history(t).Verify(); err != nil {
		t.Error(err)
	}
	if _, known := c.history(t).MedianDuration("CaughtUp"); !known {
		t.Error("how long a learner takes is not in the history")
	}
}

// TestEtcdWithoutVolumesMatchesPreview: a restart would lose data, so members are replaced. The preview deletes
// no retained volume.
func TestEtcdWithoutVolumesMatchesPreview(t *testing.T) {
	c := formed(t, 3, version("3.5"), func(s *etcdv1.EtcdClusterSpec) { s.Storage.Medium = etcdv1.MediumEphemeral })
	c.matchesPreview(t, "another release", version("3.6"))
	c.deletionMatchesPreview(t)
	c = &cluster{client.ObjectKey{Namespace: c.key.Namespace, Name: "kept"}, c.driver}
	c.Apply(t, func(s *etcdv1.EtcdClusterSpec) { s.Size, s.Storage.Retention = 1, etcdv1.RetentionRetain })
	c.settled(t)
	c.deletionMatchesPreview(t)
}

// TestEtcdInMemoryMatchesPreview: members in memory lose their data with their pods, so a change replaces them.
func TestEtcdInMemoryMatchesPreview(t *testing.T) {
	inMemory := func(mebibytes string) func(*etcdv1.EtcdClusterSpec) {
		size := resource.MustParse(mebibytes)
		return func(s *etcdv1.EtcdClusterSpec) { s.Storage.Medium, s.Storage.Size = etcdv1.MediumMemory, &size }
	}
	c := formed(t, 3, inMemory("128Mi"))
	c.matchesPreview(t, "more memory", inMemory("256Mi"))
	c.matchesPreview(t, "one member less", func(s *etcdv1.EtcdClusterSpec) { s.Size = 2 })
	c.deletionMatchesPreview(t)
}

// TestEtcdVolumeGrowthMatchesPreview: nothing restarts, and a later member has the larger volume from the start.
func TestEtcdVolumeGrowthMatchesPreview(t *testing.T) {
	sized := func(size string) func(*etcdv1.EtcdClusterSpec) {
		q := resource.MustParse(size)
		return func(s *etcdv1.EtcdClusterSpec) { s.Storage.Size = &q }
	}
	c := formed(t, 2, sized("1Gi"))
	pods := []types.UID{c.pod(t, "etcd-0").UID, c.pod(t, "etcd-1").UID}
	c.matchesPreview(t, "larger volumes", sized("2Gi"))
	if now := []types.UID{c.pod(t, "etcd-0").UID, c.pod(t, "etcd-1").UID}; !slices.Equal(now, pods) {
		t.Errorf("the pods were %v and are %v", pods, now)
	}
	c.matchesPreview(t, "larger volumes, and one member more", func(s *etcdv1.EtcdClusterSpec) {
		sized("3Gi")(s)
		s.Size = 3
	})
	volumes, err := c.volumes(t.Context())
	if err != nil || len(volumes) != 3 {
		t.Fatalf("%v, %v", volumes, err)
	}
	for _, v := range volumes {
		if asked := v.Spec.Resources.Requests.Storage(); asked.Cmp(resource.MustParse("3Gi")) != 0 {
			t.Errorf("%s asks for %s", v.Name, asked)
		}
	}
}

// TestEtcdCreationAndDeletionMatchPreview previews the creation and the deletion.
func TestEtcdCreationAndDeletionMatchPreview(t *testing.T) {
	c := newCluster(t)
	want := func() *etcdv1.EtcdCluster {
		obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}
		obj.Spec.Size, obj.Spec.TLS.Mode = 3, etcdv1.TLSModeManaged
		return obj
	}
	var report preview.Report
	eventually(t, "a preview is given", func(ctx context.Context) error {
		asked := want()
		asked.Annotations = map[string]string{lifecycle.AnnotationPreview: preview.Update}
		if err := api.Create(ctx, asked, client.DryRunAll); err != nil {
			return err
		}
		var ok bool
		if report, ok = preview.Decode(asked.Annotations[lifecycle.AnnotationPreview]); !ok || !complete(report) {
			return fmt.Errorf("%w: it is %+v", errNotYet, report)
		}
		return nil
	})
	if err := api.Create(t.Context(), want()); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
	stepped(t, "creation", report, c.history(t).Entries)
	happened(t, "creation", report, nil, look(t, c.observer()))
	c.deletionMatchesPreview(t)
}

// deletionMatchesPreview deletes the cluster: one step, and Kubernetes does the rest.
func (c *cluster) deletionMatchesPreview(t *testing.T) {
	t.Helper()
	report := c.ask(t, preview.Delete, func(*etcdv1.EtcdClusterSpec) {})
	if a := report.Actions(); len(a) != 1 || a[0].Name != etcd.DeleteCluster || !report.Settles() {
		t.Errorf("the preview of the deletion is %+v", report)
	}
	before := look(t, c.observer())
	if err := api.Delete(t.Context(), c.get(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all that is provided is gone", func(context.Context) error {
		if left := look(t, c.observer()); len(left) > 0 {
			return fmt.Errorf("%w: %d are left", errNotYet, len(left))
		}
		return nil
	})
	happened(t, "deletion", report, before, nil)
}

// TestEtcdNewAuthorityMatchesPreview: an authority is lost while the cluster is paused, and the operator follows the preview
// after the pause.
func TestEtcdNewAuthorityMatchesPreview(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	pause := func(on bool) func(*etcdv1.EtcdClusterSpec) {
		return func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = on }
	}
	c.Apply(t, pause(true))
	eventually(t, "it is paused", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return apimeta.IsStatusConditionTrue(obj.Status.Conditions, lifecycle.ConditionPaused)
		})
	})
	must(t, "-n", c.key.Namespace, "delete", "secret", "etcd-peer-ca")
	eventually(t, "the status names the certificates that the pause keeps from being renewed", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			due := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionCertificatesDue)
			return due != nil && due.Status == metav1.ConditionTrue && contains(due.Message, "etcd-peer-ca")
		})
	})
	c.matchesPreview(t, "another authority", pause(false))
}

// TestMemcachedChangesMatchPreview is as in envtest, with the effects of Kubernetes' own controllers.
func TestMemcachedChangesMatchPreview(t *testing.T) {
	i := ready(t, 1)
	o := previewcheck.Observer{
		Client: api, Namespace: i.key.Namespace, Instance: i.key.Name, App: memcached.Name, Kinds: []schema.GroupVersionKind{
			appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Service"),
			policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		},
	}
	for name, edit := range map[string]func(*cachev1.MemcachedSpec){
		"size":    func(s *cachev1.MemcachedSpec) { s.Size = 3 },
		"version": func(s *cachev1.MemcachedSpec) { s.Version = "1.6.38" },
		"port":    func(s *cachev1.MemcachedSpec) { s.ContainerPort = 22122 },
	} {
		report, before := i.ask(t, preview.Update, edit), look(t, o)
		i.Apply(t, edit)
		i.Settles(t, lifecycle.OutcomeSettled, report.Reason)
		happened(t, name, report, before, look(t, o))
	}
	report, before := i.ask(t, preview.Delete, func(*cachev1.MemcachedSpec) {}), look(t, o)
	if err := api.Delete(t.Context(), &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: i.key.Namespace, Name: i.key.Name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Kubernetes has cleared up", func(context.Context) error {
		if left := look(t, o); len(left) > 0 {
			return fmt.Errorf("%w: %d are left", errNotYet, len(left))
		}
		return nil
	})
	happened(t, "deletion", report, before, nil)
}

// ask previews the edit, or the deletion.
func (i *instance) ask(t *testing.T, question string, edit func(*cachev1.MemcachedSpec)) (report preview.Report) {
	t.Helper()
	eventually(t, "a preview is given", func(ctx context.Context) error {
		m := &cachev1.Memcached{}
		if err := api.Get(ctx, i.key, m); err != nil {
			return err
		}
		edit(&m.Spec)
		m.Annotations = map[string]string{lifecycle.AnnotationPreview: question}
		if err := api.Update(ctx, m, client.DryRunAll); err != nil {
			return err
		}
		var ok bool
		if report, ok = preview.Decode(m.Annotations[lifecycle.AnnotationPreview]); !ok || !complete(report) {
			return fmt.Errorf("%w: it is %+v", errNotYet, report)
		}
		return nil
	})
	return report
}

// TestLegacyManifestsArePlanned: the preview of a v1beta2 manifest works for a new and
// for an existing object.
func TestLegacyManifestsArePlanned(t *testing.T) {
	c := newCluster(t)
	said, code := plugin(t, c.key.Namespace, "plan", "--detailed-exitcode", "-f", c.legacy(t, 1))
	if code != 2 || !contains(said, "etcdcluster/etcd in "+c.key.Namespace+": 1 step") {
		t.Errorf("the creation is planned so (%d):\n%s", code, said)
	}
	if _, err := c.read(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("a plan made something: %v", err)
	}
	must(t, "-n", c.key.Namespace, "apply", "-f", c.legacy(t, 1))
	c.settled(t)
	if said, code := plugin(t, c.key.Namespace, "plan", "--detailed-exitcode", "-f", c.legacy(t, 1)); code != 0 {
		t.Errorf("the same manifest changes something (%d):\n%s", code, said)
	}
	said, _ = plugin(t, c.key.Namespace, "plan", "-f", c.legacy(t, 3), "-o", "json")
	deprecated, raw, _ := strings.Cut(said, "{")
	if !contains(deprecated, "v1beta2 EtcdCluster is deprecated") {
		t.Errorf("the version is not called deprecated: %q", deprecated)
	}
	report, ok := preview.Decode("{" + raw)
	if !ok || len(report.Actions()) < 2 {
		t.Fatalf("a change is planned so:\n%s", said)
	}
	before, begun := look(t, c.observer()), len(c.history(t).Entries)
	must(t, "-n", c.key.Namespace, "apply", "-f", c.legacy(t, 3))
	c.settled(t)
	stepped(t, "through v1beta2", report, c.history(t).Entries[begun:])
	happened(t, "through v1beta2", report, before, look(t, c.observer()))
}

// legacy writes the v1beta2 manifest of a cluster of that size.
func (c *cluster) legacy(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "legacy.yaml")
	text := fmt.Sprintf("apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata:\n  name: %s\nspec:\n  size: %d\n  version: \"3.6\"\n", c.key.Name, size)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
