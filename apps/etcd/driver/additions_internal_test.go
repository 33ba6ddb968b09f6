package driver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// The fields that a user added to a StatefulSet stay while its pod runs. They are removed once the
// pod cannot run, and what the owner declares is kept (chaos seed 3353449933).
func TestAddedFieldsAreRemovedOnceThePodCannotRun(t *testing.T) {
	s := memberWithSet(t)
	seen := s.read()
	seen.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "none"}
	seen.Spec.Template.Spec.Containers = append(seen.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "missing"})
	if err := s.d.client.Update(t.Context(), seen, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	if got := s.edited(lifecycle.PodProblemNone); got != "" {
		t.Errorf("the pod runs, and the StatefulSet is edited: %q", got)
	}
	if got := s.edited(lifecycle.PodProblemUnschedulable); got == "" {
		t.Fatal("the pod is unschedulable, and the added fields are not found")
	}
	s.restore()
	now := s.read().Spec.Template.Spec
	if len(now.NodeSelector) != 0 || len(now.Containers) != 1 || now.Containers[0].Name != etcd.Name || now.Containers[0].Image == "" {
		t.Errorf("nodeSelector %v, containers %d after the repair", now.NodeSelector, len(now.Containers))
	}
	s.d.edits = newEdits()
	if got := s.edited(lifecycle.PodProblemUnschedulable); got != "" {
		t.Errorf("after the repair the StatefulSet is edited: %q", got)
	}
}

// A first ordinal renames the member's pod. It is removed also while that pod runs.
func TestFirstOrdinalIsRemoved(t *testing.T) {
	s := memberWithSet(t)
	seen := s.read()
	seen.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	if err := s.d.client.Update(t.Context(), seen, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	if got := s.edited(lifecycle.PodProblemNone); got != "spec.ordinals, spec.ordinals.start" && got != "spec.ordinals.start" {
		t.Errorf("edited %q", got)
	}
	s.restore()
	if now := s.read().Spec.Ordinals; now != nil && now.Start != 0 {
		t.Errorf("ordinals %v after the repair", now)
	}
}

// A user may remove all labels of a StatefulSet and of its pod (chaos seed 3353449939).
func TestMemberWithoutLabelsJoinsTheService(t *testing.T) {
	s := memberWithSet(t)
	set, pod := s.read(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.member.Name + "-0", Namespace: s.want.Namespace}}
	set.Labels = nil
	if err := s.d.client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := s.d.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p := parts{sets: map[string]*appsv1.StatefulSet{s.member.Name: set}, pods: map[string]*corev1.Pod{s.member.Name: pod}}
	if err := s.d.expose(t.Context(), p, s.member.Name, etcd.Exposed); err != nil {
		t.Fatal(err)
	}
	if got := s.read().Labels[etcd.LabelExposed]; got != string(etcd.Exposed) {
		t.Errorf("the StatefulSet's label is %q", got)
	}
}

// setScene is a member whose StatefulSet an API server has.
type setScene struct {
	t      *testing.T
	d      *Driver
	want   *etcdv1.EtcdCluster
	member etcd.Member
}

func memberWithSet(t *testing.T) *setScene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, etcdv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	want := plain("")
	want.Spec.Size = 1
	s := &setScene{t: t, want: want, d: &Driver{client: api, live: api, edits: newEdits(), comparer: apply.NewComparer(scheme)}}
	s.member = etcd.Member{Name: "my-etcd-0", Set: etcd.Set{Exists: true, Version: etcd.Newest, Revision: etcd.Revision(want), Exposure: etcd.Exposed}}
	if err := s.d.restoreSet(t.Context(), want, view{}, s.step()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *setScene) step() lifecycle.Step {
	return lifecycle.Step{Target: s.member.Name, Args: map[string]string{
		etcd.ArgVersion: s.member.Set.Version, etcd.ArgRevision: s.member.Set.Revision, etcd.ArgExposed: string(etcd.Exposed),
	}}
}

func (s *setScene) read() *appsv1.StatefulSet {
	s.t.Helper()
	var set appsv1.StatefulSet
	if err := s.d.live.Get(s.t.Context(), client.ObjectKey{Namespace: s.want.Namespace, Name: s.member.Name}, &set); err != nil {
		s.t.Fatal(err)
	}
	return &set
}

func (s *setScene) view() view {
	return view{world: etcd.World{Members: []etcd.Member{s.member}}, parts: parts{sets: map[string]*appsv1.StatefulSet{s.member.Name: s.read()}}}
}

func (s *setScene) edited(trouble lifecycle.PodProblem) string {
	s.t.Helper()
	s.member.Pod = etcd.Pod{Exists: true, Ready: trouble == lifecycle.PodProblemNone, Trouble: trouble}
	v := s.view()
	if err := s.d.findEdits(s.t.Context(), s.want, v); err != nil {
		s.t.Fatal(err)
	}
	return v.world.Members[0].Set.Edited
}

func (s *setScene) restore() {
	s.t.Helper()
	if err := s.d.restoreSet(s.t.Context(), s.want, s.view(), s.step()); err != nil {
		s.t.Fatal(err)
	}
}

// A variable of etcd or a mount over its data takes effect at the next start, so it is removed while the pod runs.
func TestWhatEndangersTheDataIsRemovedAtOnce(t *testing.T) {
	for name, add := range map[string]func(*corev1.Container){
		"Variable": func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "ETCD_FORCE_NEW_CLUSTER", Value: "true"})
		},
		"Mount": func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "empty", MountPath: "/var/lib/etcd/data"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := memberWithSet(t)
			seen := s.read()
			add(&seen.Spec.Template.Spec.Containers[0])
			if err := s.d.client.Update(t.Context(), seen, client.FieldOwner("kubectl-set")); err != nil {
				t.Fatal(err)
			}
			if got := s.edited(lifecycle.PodProblemNone); got == "" {
				t.Fatal("it stays until the next start")
			}
			s.restore()
			if etcd.EndangersData(s.want, s.read().Spec.Template.Spec) {
				t.Errorf("after the repair: %v", s.read().Spec.Template.Spec.Containers[0])
			}
		})
	}
}

// A volume over the data directory shows nothing about the member's own data.
func TestAHiddenVolumeIsNotLost(t *testing.T) {
	const empty = `{"level":"fatal","msg":"discovery failed","error":"couldn't find local name \"my-etcd-0\" in the initial cluster configuration"}`
	for hidden, want := range map[string]bool{"/mnt": true, "/var/lib/etcd/data": false} {
		found := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: etcd.Name, VolumeMounts: []corev1.VolumeMount{{Name: "x", MountPath: hidden}}}}}}
		found.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: etcd.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: empty}}}}
		p := parts{pods: map[string]*corev1.Pod{"my-etcd-0": found}, bootstrapConfigs: map[string]*corev1.ConfigMap{"my-etcd-0": {Data: map[string]string{"bootstrap": "Disabled"}}}}
		if m := fromKubernetes(plain(""), p, "my-etcd-0"); m.Volume.Lost != want {
			t.Errorf("with a volume at %s the data is lost: %t", hidden, m.Volume.Lost)
		}
	}
}
