package envtest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/test/fakeapp"
)

// resizeByEdit edits the ring as kubectl edit does.
func resizeByEdit(t *testing.T, namespace string, edit func(*fakeapp.Spec)) {
	t.Helper()
	eventually(t, "the ring is edited", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil {
			return err
		}
		edit(&r.Spec)
		return api.Update(t.Context(), r, client.FieldOwner("kubectl-edit"))
	})
}

func revisionsOf(t *testing.T, namespace string) []revision.Revision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	must(t, api.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels(revision.Selector("Ring", "r"))))
	var all []revision.Revision
	for i := range list.Items {
		r, err := revision.Of(&list.Items[i])
		must(t, err)
		all = append(all, r)
	}
	revision.Sort(all)
	return all
}

func messageOf(conditions []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

func TestHistoryRecordsUserAndTarget(t *testing.T) {
	namespace, op := settledRing(t, 3)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	last, _ := bookOf(t, namespace, "r").Last()
	asked := []history.GateResult{{Gate: "KeepsQuorum"}, {Gate: "FleetBudget"}}
	if last.By != "kubectl-edit" || !slices.Equal(last.Gates, asked) || last.Generation != 2 ||
		!slices.Contains(last.Evidence, "3 of 3 voters are healthy.") {
		t.Errorf("the last entry is %+v", last)
	}
	quiet(t, namespace, op)
}

// Each spec is a revision once. Status updates, reconciles without a change, and a restart
// write none.
func TestEverySpecIsOneRevision(t *testing.T) {
	namespace, op := settledRing(t, 1)
	for _, size := range []int{3, 2} {
		resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size = size })
		ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	quiet(t, namespace, op)
	all := revisionsOf(t, namespace)
	if len(all) != 3 {
		t.Fatalf("there are %d revisions, want 3", len(all))
	}
	for i, want := range []string{`{"size":1}`, `{"size":3}`, `{"size":2}`} {
		if r := all[i]; r.Number != int64(i+1) || !r.Settled || string(r.Spec) != want || r.Generation != int64(i+1) {
			t.Errorf("revision %d is %+v with %s", i+1, r, r.Spec)
		}
	}
	if all[0].By == "kubectl-edit" || all[2].By != "kubectl-edit" {
		t.Errorf("they are by %s and %s", all[0].By, all[2].By)
	}
	op.stop()
	before := turnsOf("ring")
	second := startOperatorIn(t, setting{lists: op.lists}, namespace)
	eventually(t, "the new operator looks at the ring", func() error {
		if turnsOf("ring") <= before {
			return errors.New("no turn yet")
		}
		return nil
	})
	quiet(t, namespace, second)
	if n := second.writes.Load(); n != 0 {
		t.Errorf("a restart wrote %q", second.since(0))
	}
	for size := range 10 {
		resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size = 1 + size%2 })
		ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	all = revisionsOf(t, namespace)
	if len(all) != revision.Limit || all[len(all)-1].Number != 13 {
		t.Errorf("%d revisions are kept, up to %d; want %d, up to 13", len(all), all[len(all)-1].Number, revision.Limit)
	}
}

func rollsBack(s *v1alpha1.OperationPolicySpec) { s.OnFailure = v1alpha1.FailurePolicyRollback }

func TestFailedChangeIsRolledBackOnce(t *testing.T) {
	namespace, op := settledRing(t, 3)
	p := newPolicy(t, namespace, "undo", rollsBack)
	spoil := func(s *fakeapp.Spec) { s.Size, s.Mood = 5, "broken" }
	resizeByEdit(t, namespace, spoil)
	ringReaches(t, namespace, "r", lifecycle.ConditionRolledBack, metav1.ConditionTrue, "ChangeFailed")
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if (r.Spec != fakeapp.Spec{Size: 3}) || len(r.Status.Members) != 3 {
		t.Errorf("the spec is %+v, members %v", r.Spec, r.Status.Members)
	}
	last, _ := bookOf(t, namespace, "r").Last()
	if last.Step.Name != "Rollback" || last.Step.Cause != lifecycle.CausePolicy || last.Step.Args["from"] != "2" || last.Step.Args["to"] != "1" ||
		!strings.Contains(last.Step.Message, p.Name) || !strings.Contains(last.Step.Message, "kubectl-edit") {
		t.Errorf("the last entry is %+v", last)
	}
	quiet(t, namespace, op)
	resizeByEdit(t, namespace, spoil)
	r = ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
	if said := messageOf(r.Status.Conditions, lifecycle.ConditionReady); !strings.Contains(said, "was rolled back once and was declared again") {
		t.Errorf("why it halts: %s", said)
	}
	quiet(t, namespace, op)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size, s.Mood = 2, "" })
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if messageOf(r.Status.Conditions, lifecycle.ConditionRolledBack) != "" {
		t.Error("a user has declared another spec, and it is still called rolled back")
	}
	settled := func(r revision.Revision) bool { return r.Settled }
	if all := revisionsOf(t, namespace); len(all) != 5 || slices.IndexFunc(all, settled) != 0 || all[1].Settled || all[2].By != "governor-rollback" {
		t.Errorf("the revisions are %+v", all)
	}
}

// A rollback keeps the value of a field that can only grow, and reverts all other fields.
func TestRollbackKeepsGrowOnlyFields(t *testing.T) {
	namespace, op := settledRing(t, 3)
	newPolicy(t, namespace, "undo", rollsBack)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size, s.Disk, s.Mood = 5, 2, "broken" })
	r := ringReaches(t, namespace, "r", lifecycle.ConditionRolledBack, metav1.ConditionTrue, "ChangeFailed")
	if said := messageOf(r.Status.Conditions, lifecycle.ConditionRolledBack); !strings.Contains(said, "except that spec.disk stays 2, as disks only grow") {
		t.Errorf("the condition says %s", said)
	}
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if (r.Spec != fakeapp.Spec{Size: 3, Disk: 2}) {
		t.Errorf("the spec is %+v", r.Spec)
	}
	last, _ := bookOf(t, namespace, "r").Last()
	if last.Step.Name != "Rollback" || !strings.Contains(last.Step.Message, "puts revision 1 back, except that spec.disk stays 2") {
		t.Errorf("the last entry is %+v", last)
	}
	quiet(t, namespace, op)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Disk, s.Mood = 3, "broken" })
	ringReaches(t, namespace, "r", lifecycle.ConditionRolledBack, metav1.ConditionTrue, "ChangeFailed")
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if (r.Spec != fakeapp.Spec{Size: 3, Disk: 3}) {
		t.Errorf("the second time the spec is %+v", r.Spec)
	}
	quiet(t, namespace, op)
}

// A failure that the planner only suspects to come from the change is rolled back if the
// spec has never settled, and not if it has.
func TestSuspectChangeIsRolledBackUnlessItOnceSettled(t *testing.T) {
	namespace, op := settledRing(t, 1)
	newPolicy(t, namespace, "undo", rollsBack)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Mood = "mad" })
	ringReaches(t, namespace, "r", lifecycle.ConditionRolledBack, metav1.ConditionTrue, "Mad")
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	quiet(t, namespace, op)
	setHealth(t, namespace, "r-"+r.Status.Members[0], fakeapp.Inconsistent)
	r = ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "Mad")
	if said := messageOf(r.Status.Conditions, lifecycle.ConditionReady); strings.Contains(said, "halts") {
		t.Errorf("of a spec that worked it says %s", said)
	}
	quiet(t, namespace, op)
	if last, _ := bookOf(t, namespace, "r").Last(); last.Step.Name != "Rollback" || last.Step.Args["from"] != "2" {
		t.Errorf("the last entry is %+v", last)
	}
}

// If the API server rejects a rollback, the operator halts. The message has the failure
// and the rejection.
func TestRefusedRollbackHalts(t *testing.T) {
	namespace, op := settledRing(t, 1)
	newPolicy(t, namespace, "undo", rollsBack)
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Once, s.Mood = "yes", "broken" })
	r := ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
	if said := messageOf(r.Status.Conditions, lifecycle.ConditionReady); !strings.Contains(said, "the API server refuses revision 1") || !strings.Contains(said, "spec.once cannot be changed") {
		t.Errorf("why it halts: %s", said)
	}
	quiet(t, namespace, op)
}

func TestFailedChangeHalts(t *testing.T) {
	t.Run("WithoutAPolicy", func(t *testing.T) {
		namespace, op := settledRing(t, 1)
		resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Mood = "broken" })
		r := ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
		quiet(t, namespace, op)
		if r.Spec.Mood != "broken" {
			t.Errorf("the policy asks for no rollback, and the spec is %+v", r.Spec)
		}
	})
	t.Run("WithoutARevisionThatWorked", func(t *testing.T) {
		installRings(t)
		namespace := newNamespace(t)
		newPolicy(t, namespace, "undo", rollsBack)
		startOperator(t, namespace)
		r := &fakeapp.Ring{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: fakeapp.Spec{Size: 1, Mood: "broken"}}
		must(t, api.Create(t.Context(), r))
		r = ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
		if said := messageOf(r.Status.Conditions, lifecycle.ConditionReady); !strings.Contains(said, "none is known that worked") {
			t.Errorf("why it halts: %s", said)
		}
	})
}

// A user rolls back by hand, with a plan first.
func TestPluginRollsBack(t *testing.T) {
	a := previews(t, 3)
	for _, size := range []int{2, 1} {
		resizeByEdit(t, a.namespace, func(s *fakeapp.Spec) { s.Size = size })
		ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	t.Log(expect(t, a.namespace, 0, []string{"REVISION", "kubectl-edit"}, "revisions", "ring/r"))
	expect(t, a.namespace, 1, []string{"there is no revision 9: the revisions are 1 to 3"}, "rollback", "ring/r", "--to-revision", "9")
	expect(t, a.namespace, 1, []string{"has the spec of revision 3 already"}, "rollback", "ring/r", "--to-revision", "3")
	expect(t, a.namespace, 0, []string{"2 steps", "Promote"}, "rollback", "ring/r", "--dry-run")
	if r, err := get(t, &fakeapp.Ring{}, a.namespace, "r"); err != nil || r.Spec.Size != 1 {
		t.Errorf("a dry run has changed something: %+v, %v", r.Spec, err)
	}
	t.Log(expect(t, a.namespace, 0, []string{"Promote", "has the spec of revision 2 again"}, "rollback", "ring/r"))
	r := ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if r.Spec.Size != 2 || len(r.Status.Members) != 2 {
		t.Errorf("the spec is %+v, members %v", r.Spec, r.Status.Members)
	}
	expect(t, a.namespace, 0, []string{"revision 1 again"}, "rollback", "ring/r", "--to-revision", "1")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Mood = "broken" })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
	expect(t, a.namespace, 0, []string{"nothing to do", "again"}, "rollback", "ring/r")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
}

func TestPluginRollbackKeepsGrowOnlyFields(t *testing.T) {
	a := previews(t, 1)
	resizeByEdit(t, a.namespace, func(s *fakeapp.Spec) { s.Disk, s.Mood = 2, "broken" })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "ChangeFailed")
	t.Log(expect(t, a.namespace, 0, []string{"Not rolled back: spec.disk stays 2, as disks only grow."}, "rollback", "ring/r", "--dry-run"))
	t.Log(expect(t, a.namespace, 0, []string{"has the spec of revision 1 again, except that spec.disk stays 2"}, "rollback", "ring/r"))
	r := ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if (r.Spec != fakeapp.Spec{Size: 1, Disk: 2}) {
		t.Errorf("the spec is %+v", r.Spec)
	}
	expect(t, a.namespace, 1, []string{"nothing was changed: revision 1 differs only in fields that cannot be set back: spec.disk stays 2"}, "rollback", "ring/r", "--to-revision", "1")
}

// playFailure plays a Deployment whose new pods cannot pull their image.
func playFailure(t *testing.T, namespace, name, image string) {
	t.Helper()
	var dep *appsv1.Deployment
	eventually(t, "the image is provided", func() error {
		if dep = deploymentOf(t, namespace, name); dep.Spec.Template.Spec.Containers[0].Image != image {
			return errors.New("not yet")
		}
		return nil
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-new", Labels: dep.Spec.Template.Labels}, Spec: dep.Spec.Template.Spec}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "new"
	must(t, api.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "memcached", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
	}}
	must(t, api.Status().Update(t.Context(), pod))
	playDeployment(t, dep, func(s *appsv1.DeploymentStatus) { s.Replicas++; s.UpdatedReplicas = 1 })
}

func TestMemcachedRollsBackToWorkingImage(t *testing.T) {
	namespace := previews(t, 1).namespace
	newPolicy(t, namespace, "undo", func(s *v1alpha1.OperationPolicySpec) { s.Selector.Kinds = []string{"Memcached"}; rollsBack(s) })
	newMemcached(t, namespace, "m", 2)
	deploymentOf(t, namespace, "m")
	playKubernetes(t, namespace, "m")
	fromTemplate(t, namespace, "m-c", "old")
	fromTemplate(t, namespace, "m-b", "old")
	m := reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	worked := deploymentOf(t, namespace, "m").Spec.Template.Spec.Containers[0].Image
	m.Spec.Image = "registry.invalid/memcached:none"
	must(t, api.Update(t.Context(), m, client.FieldOwner("kubectl-edit")))
	playFailure(t, namespace, "m", m.Spec.Image)
	m = reaches(t, namespace, "m", lifecycle.ConditionRolledBack, metav1.ConditionTrue, "ImagePullBackOff")
	if m.Spec.Image != "" || m.Spec.Size != 2 {
		t.Errorf("the spec is %+v", m.Spec)
	}
	eventually(t, "the Deployment has the image that worked", func() error {
		if is := deploymentOf(t, namespace, "m").Spec.Template.Spec.Containers[0].Image; is != worked {
			return errors.New(is)
		}
		return nil
	})
	t.Log(expect(t, namespace, 0, []string{"Rollback m in", "cause: Policy"}, "history", "memcached/m"))
	t.Log(expect(t, namespace, 0, []string{"Revision 2 (by kubectl-edit) has failed", "It is rolled back since"}, "why", "memcached/m"))
	t.Log(expect(t, namespace, 0, []string{"kubectl-edit"}, "revisions", "memcached/m"))
	t.Log(expect(t, namespace, 0, []string{"registry.invalid/memcached:none"}, "plan", "memcached/m", "--set", "spec.image=registry.invalid/memcached:none"))
}

func fromTemplate(t *testing.T, namespace, pod, template string) {
	t.Helper()
	p, err := get(t, &corev1.Pod{}, namespace, pod)
	must(t, err)
	p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = template
	must(t, api.Update(t.Context(), p))
}
