package envtest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// strict rejects unknown fields, as kubectl does.
func strict() client.Client { return client.WithFieldValidation(api, metav1.FieldValidationStrict) }

func newMemcached(t *testing.T, namespace, name string, size int32) *cachev1.Memcached {
	t.Helper()
	m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Size = size
	must(t, api.Create(t.Context(), m))
	return m
}

// playKubernetes plays the Deployment controller and the kubelets: size pods, all ready.
func playKubernetes(t *testing.T, namespace, name string) {
	t.Helper()
	dep := deploymentOf(t, namespace, name)
	size := *dep.Spec.Replicas
	for i := range size {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%c", name, 'c'-i), Labels: dep.Spec.Template.Labels,
		}, Spec: dep.Spec.Template.Spec}
		must(t, client.IgnoreAlreadyExists(api.Create(t.Context(), pod)))
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(t, api.Status().Update(t.Context(), pod))
	}
	playDeployment(t, dep, func(s *appsv1.DeploymentStatus) {
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = size, size, size, size
	})
}

func playDeployment(t *testing.T, dep *appsv1.Deployment, edit func(*appsv1.DeploymentStatus)) {
	t.Helper()
	dep.Status.ObservedGeneration = dep.Generation
	edit(&dep.Status)
	must(t, api.Status().Update(t.Context(), dep))
}

func deploymentOf(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	var dep *appsv1.Deployment
	eventually(t, "the deployment exists", func() (err error) {
		dep, err = get(t, &appsv1.Deployment{}, namespace, name)
		return err
	})
	return dep
}

func reaches(t *testing.T, namespace, name, kind string, status metav1.ConditionStatus, reason string) *cachev1.Memcached {
	t.Helper()
	var m *cachev1.Memcached
	eventually(t, fmt.Sprintf("%s becomes %s, %s", kind, status, reason), func() (err error) {
		if m, err = get(t, &cachev1.Memcached{}, namespace, name); err != nil {
			return err
		}
		if m.Status.ObservedGeneration != m.Generation {
			return errors.New("the status is about an older generation")
		}
		return condition(m.Status.Conditions, kind, status, reason)
	})
	return m
}

func TestMemcachedIsReadyOnlyWhenPodsAre(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 3)
	m := reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	must(t, condition(m.Status.Conditions, "Available", metav1.ConditionFalse, "RollingOut"))
	playKubernetes(t, namespace, "m")
	m = reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	if want := []string{"m-a", "m-b", "m-c"}; !slices.Equal(m.Status.Nodes, want) {
		t.Errorf("nodes are %v, want %v", m.Status.Nodes, want)
	}
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		_, err := get(t, obj, namespace, "m")
		must(t, err)
		if !metav1.IsControlledBy(obj, m) {
			t.Errorf("%T is not owned, so it would outlive the instance", obj)
		}
	}
}

func TestDriftIsRepairedAndForeignFieldsStay(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	dep := deploymentOf(t, namespace, "m")
	dep.Annotations = map[string]string{"example.com/mine": "yes"}
	dep.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	dep.Spec.Replicas = new(int32(7))
	c := &dep.Spec.Template.Spec.Containers[0]
	c.Image, c.Args, c.Ports[0].ContainerPort = "evil:1", []string{"--port=1"}, 1
	must(t, api.Update(t.Context(), dep, client.FieldOwner("kubectl-edit")))
	eventually(t, "drift is repaired", func() error {
		dep := deploymentOf(t, namespace, "m")
		c := dep.Spec.Template.Spec.Containers[0]
		if *dep.Spec.Replicas != 1 || c.Image == "evil:1" || len(c.Args) != 2 || c.Ports[0].ContainerPort != 11211 {
			return fmt.Errorf("replicas %d, %s %v %v", *dep.Spec.Replicas, c.Image, c.Args, c.Ports)
		}
		return nil
	})
	dep = deploymentOf(t, namespace, "m")
	if dep.Annotations["example.com/mine"] != "yes" || len(dep.Spec.Template.Annotations) != 1 {
		t.Error("what others set must stay")
	}
	ownedBy(t, namespace, "governor Apply", "kubectl-edit Update")
}

// ownedBy waits until exactly these managers own fields of the Deployment.
func ownedBy(t *testing.T, namespace string, want ...string) {
	t.Helper()
	eventually(t, "the fields have their owners", func() error {
		var got []string
		for _, e := range deploymentOf(t, namespace, "m").ManagedFields {
			got = append(got, fmt.Sprintf("%s %s", e.Manager, e.Operation))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("they are %q, want %q", got, want)
		}
		return nil
	})
}

// An operator that dies during the repair of a list leaves the repair's own field manager
// behind. The next operator completes the repair, so that a field is removed when it is no
// longer declared.
func TestInterruptedListRepairIsCompleted(t *testing.T) {
	namespace := newNamespace(t)
	first := startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	dep := deploymentOf(t, namespace, "m")
	quiet(t, namespace, first)
	first.stop()
	args := &dep.Spec.Template.Spec.Containers[0].Args
	for _, value := range [][]string{{"--else"}, slices.Clone(*args)} { // only a change gives ownership
		base := dep.DeepCopy()
		*args = value
		must(t, api.Patch(t.Context(), dep, client.MergeFrom(base), client.FieldOwner("governor-lists")))
		args = &dep.Spec.Template.Spec.Containers[0].Args
	}
	startOperator(t, namespace)
	ownedBy(t, namespace, "governor Apply")
}

func TestDeletedOrUnlabelledObjectsAreRestored(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	dep := deploymentOf(t, namespace, "m")
	must(t, api.Delete(t.Context(), dep))
	eventually(t, "the deployment comes back", func() error {
		again, err := get(t, &appsv1.Deployment{}, namespace, "m")
		if err == nil && again.UID == dep.UID {
			return errors.New("it has not gone yet")
		}
		return err
	})
	again := deploymentOf(t, namespace, "m")
	again.Labels = nil
	must(t, api.Update(t.Context(), again))
	eventually(t, "the labels come back", func() error {
		if l := deploymentOf(t, namespace, "m").Labels; l[lifecycle.LabelApp] == "" {
			return fmt.Errorf("labels are %v", l)
		}
		return nil
	})
}

func TestSettledObjectCausesNoWrites(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	for _, name := range []string{"a", "b"} {
		newMemcached(t, namespace, name, 3)
		playKubernetes(t, namespace, name)
		reaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	}
	quiet(t, namespace, op)
	written := op.writes.Load()
	for i := range 5 {
		svc, err := get(t, &corev1.Service{}, namespace, "a")
		must(t, err)
		svc.Annotations = map[string]string{"example.com/turn": fmt.Sprint(i)}
		before := turns()
		must(t, api.Update(t.Context(), svc))
		eventually(t, "a turn is taken", func() error {
			if turns() <= before {
				return errors.New("no turn yet")
			}
			return nil
		})
	}
	if wrote := op.since(written); len(wrote) != 0 {
		t.Errorf("writes at rest: %q, want none", wrote)
	}
}

func TestRestartCausesNoWrites(t *testing.T) {
	namespace := newNamespace(t)
	first := startOperator(t, namespace)
	newMemcached(t, namespace, "m", 2)
	playKubernetes(t, namespace, "m")
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	quiet(t, namespace, first)
	first.stop()
	before := turns()
	second := startOperator(t, namespace)
	eventually(t, "the new operator looks at the instance", func() error {
		if turns() <= before {
			return errors.New("no turn yet")
		}
		return nil
	})
	if n := second.writes.Load(); n != 0 {
		t.Errorf("a restart wrote %d times, want 0", n)
	}
}

func TestPausedByFieldOrAnnotation(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	pauses := map[string]func(*cachev1.Memcached){
		"field":      func(m *cachev1.Memcached) { m.Spec.Paused = true },
		"annotation": func(m *cachev1.Memcached) { m.Annotations = map[string]string{lifecycle.AnnotationPaused: "true"} },
	}
	for name, pause := range pauses {
		m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		pause(m)
		must(t, api.Create(t.Context(), m))
		eventually(t, "the pause is reported", func() error {
			m, err := get(t, &cachev1.Memcached{}, namespace, name)
			if err != nil {
				return err
			}
			if m.Status.ObservedGeneration != m.Generation {
				return fmt.Errorf("%w: generation %d is observed, want %d", errNotYet, m.Status.ObservedGeneration, m.Generation)
			}
			return condition(m.Status.Conditions, lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
		})
		if _, err := get(t, &appsv1.Deployment{}, namespace, name); !apierrors.IsNotFound(err) {
			t.Errorf("paused by %s, but a deployment was made: %v", name, err)
		}
		m, err := get(t, &cachev1.Memcached{}, namespace, name)
		must(t, err)
		m.Spec.Paused, m.Annotations = false, nil
		must(t, api.Update(t.Context(), m))
		deploymentOf(t, namespace, name)
	}
}

func TestForeignObjectIsReportedAndUntouched(t *testing.T) {
	namespace := newNamespace(t)
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
	theirs.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	must(t, api.Create(t.Context(), theirs))
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	m := reaches(t, namespace, "m", lifecycle.ConditionStalled, metav1.ConditionTrue, "NameTaken")
	svc, err := get(t, &corev1.Service{}, namespace, "m")
	must(t, err)
	if svc.ResourceVersion != theirs.ResourceVersion {
		t.Error("the foreign service was touched")
	}
	t.Log(m.Status.Conditions[0].Message)
	must(t, api.Delete(t.Context(), svc))
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
}

func TestQuotaIsReported(t *testing.T) {
	namespace := newNamespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}
	none := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota.Spec.Hard = none
	must(t, api.Create(t.Context(), quota))
	quota.Status.Hard, quota.Status.Used = none, none
	must(t, api.Status().Update(t.Context(), quota))
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	m := reaches(t, namespace, "m", lifecycle.ConditionStalled, metav1.ConditionTrue, "QuotaExceeded")
	t.Log(m.Status.Conditions[0].Message)
	must(t, api.Delete(t.Context(), quota))
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
}

func TestPodQuotaIsReported(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	playDeployment(t, deploymentOf(t, namespace, "m"), func(s *appsv1.DeploymentStatus) {
		s.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
			Message: `pods "m-5d4-x7z" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`,
		}}
	})
	reaches(t, namespace, "m", lifecycle.ConditionStalled, metav1.ConditionTrue, "QuotaExceeded")
}

func TestScaleSubresource(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	m := newMemcached(t, namespace, "m", 1)
	scale := &autoscaling{}
	must(t, api.SubResource("scale").Get(t.Context(), m, scale))
	scale.Spec.Replicas = 2
	must(t, api.SubResource("scale").Update(t.Context(), m, client.WithSubResourceBody(scale)))
	eventually(t, "the deployment follows the scale", func() error {
		if n := *deploymentOf(t, namespace, "m").Spec.Replicas; n != 2 {
			return fmt.Errorf("replicas %d", n)
		}
		return nil
	})
}
