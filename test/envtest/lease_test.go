package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	program "github.com/governor-dev/governor/operator"
	"github.com/governor-dev/governor/test/fakeapp"
)

// leaseSeconds is short to keep the test short.
const leaseSeconds = 3

// ringProgram is a whole operator, as Main runs it.
func ringProgram() program.Options {
	lists := fakeapp.NewLists() // they survive a restart of the manager
	return program.Options{
		Name: "rings", APIs: []func(*runtime.Scheme) error{fakeapp.AddToScheme},
		Register: func(op *engine.Operator) error {
			return engine.Register(op, engine.App[*fakeapp.Ring, fakeapp.World]{
				Name: "ring", Planner: fakeapp.Planner{}, Steps: fakeapp.Steps(), Abilities: fakeapp.Abilities(), Driver: fakeapp.NewDriver(lists),
				Gates: []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum}, Owns: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			})
		},
	}
}

// runProgram runs the operator until the test ends, and returns a channel with an earlier
// error.
func runProgram(t *testing.T, namespace string, args ...string) <-chan error {
	t.Helper()
	cmd := program.Command(ringProgram())
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{
		"run", "--watch-namespaces=" + namespace, "--leader-elect-namespace=" + namespace, "--webhooks=false", "--metrics-address=0",
		fmt.Sprintf("--leader-elect-lease-seconds=%d", leaseSeconds),
	}, args...))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() { defer close(done); ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return ended
}

// The leader cannot renew its lease during an outage. It stops acting, its process and its
// health endpoint stay up, and it leads again as soon as the API server is back.
func TestLeaderLeadsAgainRightAfterAnOutage(t *testing.T) {
	installRings(t)
	namespace, cable := newNamespace(t), newLink(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, writeKubeconfig(cable.host(), kubeconfig))
	t.Setenv("KUBECONFIG", kubeconfig)
	health := fmt.Sprintf("localhost:%d", freePort(t))
	ended := runProgram(t, namespace, "--health-address="+health)
	newRing(t, namespace, "r", 1)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	before := leaseOf(t, namespace)

	cable.sever(true)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	eventually(t, "the lease has been over for long", func() error {
		if age := time.Since(leaseOf(t, namespace).Spec.RenewTime.Time); age < 3*leaseSeconds*time.Second {
			return fmt.Errorf("%w: its age is %s", errNotYet, age)
		}
		return nil
	})
	must(t, answers(t, "http://"+health+"/healthz", http.StatusOK))
	must(t, answers(t, "http://"+health+"/readyz", http.StatusServiceUnavailable))

	back := time.Now()
	cable.sever(false)
	eventually(t, "the leader acts", func() error {
		if n := pods(t, namespace); n != 2 {
			return fmt.Errorf("%w: %d pods", errNotYet, n)
		}
		return nil
	})
	t.Logf("the next change came %s after the outage", time.Since(back).Round(10*time.Millisecond))
	must(t, answers(t, "http://"+health+"/readyz", http.StatusOK))
	after := leaseOf(t, namespace)
	if *after.Spec.HolderIdentity != *before.Spec.HolderIdentity {
		t.Errorf("the lease went from %s to %s, and there is one process", *before.Spec.HolderIdentity, *after.Spec.HolderIdentity)
	}
	select {
	case err := <-ended:
		t.Errorf("the process ended: %v", err)
	default:
	}
}

func leaseOf(t *testing.T, namespace string) *coordinationv1.Lease {
	t.Helper()
	lease, err := get(t, &coordinationv1.Lease{}, namespace, "rings.governor.dev")
	must(t, err)
	return lease
}

// answers sends one request and returns an error unless the response has the status.
func answers(t *testing.T, url string, status int) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != status {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// A process that was suspended may continue after it has lost its lease.
func TestAReplicaWithoutLeaseDoesNothing(t *testing.T) {
	namespace := newNamespace(t)
	var asked atomic.Int64
	var leads atomic.Bool
	op := startOperator(t, namespace, func(_ *ctrl.Options, e *engine.Options) {
		e.MayAct = func() bool { asked.Add(1); return leads.Load() }
	})
	newMemcached(t, namespace, "m", 1)
	eventually(t, "it asks again whether it leads", func() error { return atLeast(asked.Load(), 3) })
	for _, line := range op.since(0) {
		t.Errorf("it wrote: %s", line)
	}
	leads.Store(true)
	deploymentOf(t, namespace, "m")
}
