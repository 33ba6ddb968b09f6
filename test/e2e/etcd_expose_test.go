package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// callers are clients that open new connections all the time, to every member that the client
// Service selects.
type callers struct {
	mu      sync.Mutex
	calls   int
	refused []string
}

// call runs callers until the test ends.
func (c *cluster) call(t *testing.T) *callers {
	t.Helper()
	all := &callers{}
	meanwhile(t, 50*time.Millisecond, func(ctx context.Context) { all.round(ctx, c.clients().Find) })
	return all
}

func (a *callers) round(ctx context.Context, find func(context.Context) ([]string, error)) {
	whom, err := find(ctx)
	if ctx.Err() == nil && (err != nil || len(whom) == 0) {
		a.note("the Service", errors.Join(fmt.Errorf("it leads to %v", whom), err))
	}
	for _, address := range whom {
		if err := call(ctx, address); ctx.Err() == nil {
			a.note(address, err)
		}
	}
}

// call performs a linearizable read over a new connection. A serving member accepts it at once,
// however long the read takes on a busy machine.
func call(ctx context.Context, address string) error {
	line, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer line.Close()
	if err := connects(ctx, line); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, election)
	defer cancel()
	_, err = pb.NewKVClient(line).Range(ctx, &pb.RangeRequest{Key: []byte("call")})
	return err
}

func connects(ctx context.Context, line *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	line.Connect()
	for state := line.GetState(); state != connectivity.Ready; state = line.GetState() {
		if !line.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%s does not answer, and is %s", line.Target(), state)
		}
	}
	return nil
}

func (a *callers) note(whom string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if err != nil {
		a.refused = append(a.refused, fmt.Sprintf("%s: %v", whom, err))
	}
}

func (a *callers) answered(t *testing.T) {
	t.Helper()
	eventually(t, "enough have called", func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.refused) > 0 {
			t.Fatalf("%d of %d calls failed: %.500q", len(a.refused), a.calls, a.refused)
		}
		if a.calls < 50 {
			return fmt.Errorf("%w: %d", errNotYet, a.calls)
		}
		return nil
	})
}

// TestEtcdServiceSelectsServingMembers: a joining member gets a snapshot, and is ready in
// Kubernetes long before it serves.
func TestEtcdServiceSelectsServingMembers(t *testing.T) {
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) { spec.Options.SnapshotCount = 100 })
	c.Fill(t)
	all := c.call(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 3 })
	c.settled(t)
	all.answered(t)
	c.leadsTo(t, 3)
}

// TestEtcdOfAnOlderOperator: its pods lack the label that the client Service selects. No pod
// restarts, and no client notices.
func TestEtcdOfAnOlderOperator(t *testing.T) {
	c := formed(t, 3)
	before := uids(c.pods(t))
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = true })
	eventually(t, "the pause is heard of", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return apimeta.IsStatusConditionTrue(obj.Status.Conditions, lifecycle.ConditionPaused)
		})
	})
	c.strip(t)
	all := c.call(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = false })
	c.settled(t)
	all.answered(t)
	c.leadsTo(t, 3)
	if now := uids(c.pods(t)); !slices.Equal(before, now) {
		t.Errorf("the pods were %v, and are %v", before, now)
	}
}

func uids(pods []corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, string(p.UID))
	}
	slices.Sort(all)
	return all
}

// strip creates the state of an older operator.
func (c *cluster) strip(t *testing.T) {
	t.Helper()
	service, budget := c.selects(t)
	edit(t, service, func() { delete(service.Spec.Selector, etcd.LabelExposed) })
	edit(t, budget, func() { delete(budget.Spec.Selector.MatchLabels, etcd.LabelExposed) })
	var sets appsv1.StatefulSetList
	if err := api.List(t.Context(), &sets, client.InNamespace(c.key.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		edit(t, s, func() {
			delete(s.Labels, etcd.LabelExposed)
			delete(s.Spec.Template.Labels, etcd.LabelExposed)
		})
	}
	for _, p := range c.pods(t) {
		edit(t, &p, func() { delete(p.Labels, etcd.LabelExposed) })
	}
}

func edit(t *testing.T, obj client.Object, change func()) {
	t.Helper()
	base := obj.DeepCopyObject().(client.Object)
	change()
	if err := api.Patch(t.Context(), obj, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) selects(t *testing.T) (*corev1.Service, *policyv1.PodDisruptionBudget) {
	t.Helper()
	service, budget := &corev1.Service{}, &policyv1.PodDisruptionBudget{}
	err := errors.Join(api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: c.key.Name + "-client"}, service),
		api.Get(t.Context(), c.key, budget))
	if err != nil {
		t.Fatal(err)
	}
	return service, budget
}

// leadsTo waits until the client Service and the disruption budget select the given number of members.
func (c *cluster) leadsTo(t *testing.T, members int) {
	t.Helper()
	eventually(t, fmt.Sprintf("clients are led to %d members", members), func(ctx context.Context) error {
		found, err := c.clients().Find(ctx)
		if err != nil {
			return err
		}
		service, budget := c.selects(t)
		selects, counts := service.Spec.Selector[etcd.LabelExposed], budget.Spec.Selector.MatchLabels[etcd.LabelExposed]
		if len(found) != members || selects != "true" || counts != "true" || int(budget.Status.CurrentHealthy) != members {
			return fmt.Errorf("%w: %v; the Service selects %q, the budget %q and counts %d",
				errNotYet, found, selects, counts, budget.Status.CurrentHealthy)
		}
		return nil
	})
}
