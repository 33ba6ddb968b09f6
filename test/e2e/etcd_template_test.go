package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// TestEtcdKeepsEveryMemberWhenTheTemplateIsRefused: no pod is deleted for one that the API server
// rejects, whatever rejects it. A preview says so before, and the status in the API server's words.
func TestEtcdKeepsEveryMemberWhenTheTemplateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		size  int32
		edit  func(*etcdv1.EtcdClusterSpec)
		says  string
		admit func(t *testing.T, namespace string)
	}{
		"ServiceAccount": {3, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.ServiceAccountName = "none" }, `serviceaccount "none" not found`, nil},
		"PriorityClass":  {1, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.PriorityClassName = "none" }, `no PriorityClass with name none was found`, nil},
		"LimitRange":     {3, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Env = []corev1.EnvVar{{Name: "A", Value: "1"}} }, "minimum memory usage per Container is 4Gi", limitMemory},
		"PodSecurity": {3, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.SecurityContext = &corev1.PodSecurityContext{} },
			`violates PodSecurity "restricted:latest"`, restrict},
	} {
		t.Run(name, func(t *testing.T) { keepsMembers(t, c.size, c.edit, c.says, c.admit) })
	}
}

func keepsMembers(t *testing.T, size int32, edit func(*etcdv1.EtcdClusterSpec), says string, admit func(*testing.T, string)) {
	t.Helper()
	c := formed(t, size)
	before, pods := c.get(t), c.podUIDs(t)
	if admit != nil {
		admit(t, c.key.Namespace)
	}
	foretold := c.askUntil(t, preview.Update, edit, func(r preview.Report) bool { return r.Reason == "TemplateRefused" })
	if len(foretold.Actions()) > 0 || !contains(foretold.Message, says) {
		t.Errorf("the preview is %+v", foretold)
	}
	spec := before.Spec
	c.Apply(t, edit)
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "TemplateRefused")
	c.Rests(t)
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, says) {
		t.Errorf("the message is %q", said)
	}
	c.samePods(t, pods)
	c.Apply(t, func(s *etcdv1.EtcdClusterSpec) { *s = spec })
	same(t, before, c.settled(t))
	c.samePods(t, pods)
}

func (c *cluster) podUIDs(t *testing.T) map[string]types.UID {
	t.Helper()
	all := map[string]types.UID{}
	for _, m := range c.get(t).Status.Members {
		all[m.Name] = c.pod(t, m.Name).UID
	}
	return all
}

func (c *cluster) samePods(t *testing.T, before map[string]types.UID) {
	t.Helper()
	for member, uid := range before {
		if now := c.pod(t, member); now.UID != uid || now.DeletionTimestamp != nil {
			t.Errorf("the pod of %s has gone", member)
		}
	}
}

func limitMemory(t *testing.T, namespace string) {
	t.Helper()
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "large"}}
	limits.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}}}
	if err := api.Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
}

func restrict(t *testing.T, namespace string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if err := api.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, label)); err != nil {
		t.Fatal(err)
	}
}
