package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// competingOperator is an operator of another version on this machine that competes for the
// Lease of the operators in the cluster.
type competingOperator struct {
	metrics string
	stop    func()
}

func startOutsider(t *testing.T, version string) *competingOperator {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "governor")
	if _, err := command("go", "build", "-ldflags", "-X main.version="+version, "-o", binary, "../../cmd/governor"); err != nil {
		t.Fatal(err)
	}
	if said, err := command(binary, "version"); err != nil || said != version {
		t.Fatalf("the other version says that it is %q, %v", said, err)
	}
	address := freeAddress(t)
	o := &competingOperator{metrics: "http://" + address}
	cmd := exec.Command(binary, "run", "--leader-elect-namespace=governor-system", "--metrics-secure=false", "--metrics-address="+address, "--health-address=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	o.stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM); ended <- <-ended }
	t.Cleanup(func() {
		o.stop()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return o
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// metric adds up the lines of an operator's metrics that begin so, and counts them.
func metric(address, begins string) (sum float64, lines int, err error) {
	token, err := readsMetrics()
	if err != nil {
		return 0, 0, err
	}
	answer, err := scrape(address, token)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	scanner := bufio.NewScanner(answer.Body)
	for scanner.Scan() {
		if fields := strings.Fields(scanner.Text()); strings.HasPrefix(scanner.Text(), begins) {
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return 0, 0, err
			}
			sum, lines = sum+n, lines+1
		}
	}
	return sum, lines, scanner.Err()
}

// turns is the number of reconciles of memcached by the operator at the address.
func turns(address string) (float64, error) {
	n, _, err := metric(address, `controller_runtime_reconcile_total{controller="memcached"`)
	return n, err
}

// acts reports whether the operator at the address leads and reconciles.
func acts(address string) error {
	n, err := turns(address)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: it has taken no turn", errNotYet)
	}
	return err
}

// rests fails if the operator at the address has reconciled.
func rests(t *testing.T, address string) {
	t.Helper()
	if n, err := turns(address); err != nil || n != 0 {
		t.Errorf("beside a leader of another version the operator at %s took %v turns, %v", address, n, err)
	}
}

// clusterOperators are the metrics addresses of the operators in the cluster.
func clusterOperators(t *testing.T) []string {
	t.Helper()
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace("governor-system")); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			all = append(all, "https://"+net.JoinHostPort(p.Status.PodIP, "8443"))
		}
	}
	return all
}

// written changes when an operator writes any object of the instance. The Deployment's version is unsuitable: its
// status changes while old pods terminate.
func (i *instance) written(t *testing.T) string {
	t.Helper()
	dep := &appsv1.Deployment{}
	if err := api.Get(t.Context(), i.key, dep); err != nil {
		t.Fatal(err)
	}
	all := []string{fmt.Sprint(dep.Generation, dep.Labels, dep.Annotations)}
	for _, obj := range []client.Object{&cachev1.Memcached{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		if err := api.Get(t.Context(), i.key, obj); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%T %s", obj, obj.GetResourceVersion()))
	}
	return strings.Join(all, ", ")
}

func (i *instance) untouched(t *testing.T, before string) {
	t.Helper()
	if now := i.written(t); now != before {
		t.Errorf("a change of the leader alone wrote something:\nbefore %s\nafter  %s", before, now)
	}
}

// TestOneOfTwoOperatorVersionsActs: an operator of another version joins; one acts at a time, and a takeover writes nothing.
func TestOneOfTwoOperatorVersionsActs(t *testing.T) {
	i := ready(t, 1)
	t.Cleanup(func() {
		if err := install(); err != nil {
			t.Error(err)
		}
	})
	other := startOutsider(t, "v99.0.0-other")
	eventually(t, "the other version competes", func(context.Context) error {
		if _, lines, err := metric(other.metrics, "leader_election_master_status"); lines == 0 {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	rests(t, other.metrics)
	before := i.written(t)

	must(t, "-n", "governor-system", "scale", "deployment/governor", "--replicas=0")
	eventually(t, "the other version takes over", func(context.Context) error { return acts(other.metrics) })
	i.untouched(t, before)
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 1 })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	if err := install(); err != nil {
		t.Fatal(err)
	}
	inside := clusterOperators(t)
	for _, address := range inside {
		rests(t, address)
	}
	before = i.written(t)

	other.stop()
	eventually(t, "one in the cluster takes over", func(context.Context) error { return oneOf(inside, acts) })
	i.untouched(t, before)
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}

// oneOf reports whether it holds for exactly one of them.
func oneOf(all []string, holds func(string) error) error {
	var n int
	var err error
	for _, one := range all {
		if err = holds(one); err == nil {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%w: it holds for %d of %d: %w", errNotYet, n, len(all), err)
	}
	return nil
}
