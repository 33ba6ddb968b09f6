package e2e_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// tenant is a user who may do everything with the EtcdClusters of the namespace, and nothing else.
func tenant(t *testing.T, namespace string) client.Client {
	t.Helper()
	const user = "tenant"
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{etcdv1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	as, err := client.New(config, client.Options{Scheme: api.Scheme(), Mapper: api.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the authorizer has seen the tenant's role", func(ctx context.Context) error { return mayCreateClusters(ctx, as, namespace) })
	return as
}

// mayCreateClusters asks the API server, whose authorizer sees a new RoleBinding only after its watch.
func mayCreateClusters(ctx context.Context, as client.Client, namespace string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: etcdv1.GroupVersion.Group, Resource: "etcdclusters"},
	}}
	if err := as.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%w: %s", errNotYet, review.Status.Reason)
	}
	return nil
}

// patches lets the user change the metadata of the cluster.
func (c *cluster) patches(t *testing.T, as client.Client, edit func(*etcdv1.EtcdCluster)) error {
	t.Helper()
	obj := c.get(t)
	base := obj.DeepCopy()
	edit(obj)
	return as.Patch(t.Context(), obj, client.MergeFrom(base))
}

// TestEtcdTenantsPassNoPolicy: users who may only edit an EtcdCluster can neither bypass its policy nor
// leave it, and they cannot approve. A deletion that the policy holds stays held, and while the policy
// exists, the operator cannot be uninstalled.
func TestEtcdTenantsPassNoPolicy(t *testing.T) {
	c := newCluster(t)
	as := tenant(t, c.key.Namespace)
	obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name, Labels: map[string]string{"tier": "production"}}}
	obj.Spec.Size = 1
	if err := as.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "production"}}
		s.Freeze = &v1alpha1.Freeze{Reason: "sale"}
	})
	eventually(t, "the policy can hold the deletion", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return len(obj.Finalizers) > 0 })
	})
	if err := as.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion is held", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return obj.DeletionTimestamp != nil && heldBy(obj, "sale")
		})
	})
	t.Run("the tenant", func(t *testing.T) { c.isStillHeld(t, as) })
	t.Run("the uninstall", c.refusesUninstall)
	must(t, "delete", "operationpolicy", c.key.Namespace)
	eventually(t, "the cluster is deleted without the policy", func(ctx context.Context) error {
		if _, err := c.read(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
}

func heldBy(obj *etcdv1.EtcdCluster, words string) bool {
	for _, is := range obj.Status.Conditions {
		if is.Type == lifecycle.ConditionDeletionHeld && is.Status == metav1.ConditionTrue {
			return strings.Contains(is.Message, words)
		}
	}
	return false
}

func (c *cluster) isStillHeld(t *testing.T, as client.Client) {
	if err := c.patches(t, as, func(o *etcdv1.EtcdCluster) { o.Annotations = map[string]string{"team": "a"} }); err != nil {
		t.Fatal("the tenant may edit the cluster:", err)
	}
	for name, edit := range map[string]func(*etcdv1.EtcdCluster){
		"bypasses": func(o *etcdv1.EtcdCluster) {
			o.Annotations = map[string]string{lifecycle.AnnotationBypass: "hurry", lifecycle.AnnotationBypassBy: "tenant"}
		},
		"leaves":              func(o *etcdv1.EtcdCluster) { o.Labels = nil },
		"drops the finalizer": func(o *etcdv1.EtcdCluster) { o.Finalizers = nil },
	} {
		if err := c.patches(t, as, edit); !apierrors.IsForbidden(err) || !contains(err.Error(), `the verb "bypass" on`) {
			t.Errorf("the tenant %s: %v", name, err)
		}
	}
	approval := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "mine"}, Spec: v1alpha1.ApprovalSpec{
		TargetRef: v1alpha1.ApprovedObject{Group: etcdv1.GroupVersion.Group, Kind: "EtcdCluster", Name: c.key.Name, UID: string(c.get(t).UID), Generation: 1},
		Approver:  "tenant", Reason: "hurry", ExpirationTime: metav1.NewTime(time.Now().Add(time.Hour)),
		Steps: []v1alpha1.ApprovedStep{{Name: "DeleteCluster", Target: c.key.Name, Class: "Disruptive"}},
	}}
	if err := as.Create(t.Context(), approval); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant approves: %v", err)
	}
	policy := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: c.key.Namespace}}
	if err := as.Delete(t.Context(), policy); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant deletes the policy: %v", err)
	}
	if !heldBy(c.get(t), "sale") {
		t.Error("the deletion is not held any more")
	}
}

// refusesUninstall tries to delete what removes the finalizer, which the API server only simulates.
func (c *cluster) refusesUninstall(t *testing.T) {
	for _, args := range [][]string{
		{"namespace", "governor-system"}, {"crd", "etcdclusters.etcd.database.coreos.com"}, {"clusterrolebinding", "governor"},
		{"-n", "governor-system", "deployment", "governor"},
	} {
		_, err := kubectl(append([]string{"delete", "--dry-run=server"}, args...)...)
		if err == nil || !contains(err.Error(), "can hold deletions of EtcdClusters") {
			t.Errorf("kubectl delete %v is not refused: %v", args, err)
		}
	}
}

// TestEtcdDialsNoForeignURL: a user of the namespace lets a member publish an address outside of it. Neither
// the operator, which reaches more of the network than the user, nor the driver of this test connects to it.
func TestEtcdDialsNoForeignURL(t *testing.T) {
	c := formed(t, 1)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = true }) // or it would be removed at once
	outside, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := outside.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	url := fmt.Sprintf("http://stray.%s.svc:2380", c.key.Namespace)
	c.Await(t, "etcdctl adds a member", func() error {
		return c.Act(t, lifecycle.Step{Name: etcd.AddLearner, Target: "stray", Args: map[string]string{etcd.ArgPeerURL: url}})
	})
	c.startsStray(t, url, "http://"+outside.Addr().String())
	published := func(m etcd.Member) bool { return m.Unmanaged && m.Joined }
	c.Await(t, "the member has published its address", func() error {
		if seen := c.Observe(t); !slices.ContainsFunc(seen.Members, published) {
			return fmt.Errorf("%w: %+v", errNotYet, seen.Members)
		}
		return nil
	})
	c.Rests(t)
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections to an address outside of the namespace", n)
	}
}

// startsStray starts a pod with a member of that peer URL, and the Service of its name.
func (c *cluster) startsStray(t *testing.T, peerURL, clientURL string) {
	t.Helper()
	labels := map[string]string{"app": "stray"}
	meta := metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "stray", Labels: labels}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, PublishNotReadyAddresses: true}}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "etcd", Image: c.pod(t, "etcd-0").Spec.Containers[0].Image, Command: []string{"etcd"}, Args: []string{
			"--name=stray", "--data-dir=/tmp/stray", "--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379",
			"--initial-advertise-peer-urls=" + peerURL, "--advertise-client-urls=" + clientURL, "--initial-cluster-state=existing",
			"--initial-cluster=etcd-0=" + etcd.PeerURL(c.get(t), "etcd-0") + ",stray=" + peerURL,
		},
	}}}}
	for _, obj := range []client.Object{service, pod} {
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}
