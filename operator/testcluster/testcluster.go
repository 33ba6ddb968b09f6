// Package testcluster runs an operator against a real API server in tests: kube-apiserver and etcd, no kubelets and no
// controllers. A test plays those where the application needs them.
//
//	func TestMain(m *testing.M) {
//		os.Exit(testcluster.Main(m, testcluster.Options{CRDs: []string{"../config/crd"}, APIs: apis}))
//	}
//
//	func TestCandy(t *testing.T) {
//		c := testcluster.Get(t)
//		ns := c.Namespace(t)
//		c.Run(t, options(), ns)
//		...
//		testcluster.Eventually(t, "the candy is delivered", func() error { ... })
//	}
//
// The programs are those of the folder that KUBEBUILDER_ASSETS names. Without it, tests that need them are skipped.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/governor-dev/governor/operator"
)

const (
	// EnvAssets names the folder with kube-apiserver and etcd.
	EnvAssets = "KUBEBUILDER_ASSETS"
	// EnvLog shows the operator's log if it is set.
	EnvLog = "GOVERNOR_TEST_LOG"
	// Patience is how long Eventually waits.
	Patience = 60 * time.Second
)

// Options are what all tests of a package share.
type Options struct {
	// CRDs are folders with the definitions of the operator's kinds. One that is missing is an error.
	CRDs []string
	// APIs add the kinds to the scheme of the client.
	APIs []func(*runtime.Scheme) error
}

// Cluster is a real API server.
type Cluster struct {
	// Config is an administrator's.
	Config *rest.Config
	// Client reads and writes as an administrator, without a cache.
	Client client.Client

	env *envtest.Environment
}

var current *Cluster

// Main starts the cluster, runs the tests and stops it; it returns the exit code. It is for TestMain.
func Main(m *testing.M, o Options) int {
	ctrl.SetLogger(verbosity())
	if os.Getenv(EnvAssets) == "" {
		fmt.Fprintf(os.Stderr, "%s is not set: tests that need an API server are skipped\n", EnvAssets)
		return m.Run()
	}
	c, err := Start(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	current = c
	code := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the API server does not stop:", err)
		return 1
	}
	return code
}

func verbosity() logr.Logger {
	if os.Getenv(EnvLog) == "" {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
}

// Get returns the cluster that Main has started, and skips the test if there is none.
func Get(t testing.TB) *Cluster {
	t.Helper()
	if current == nil {
		t.Skipf("needs an API server: set %s to a folder with kube-apiserver and etcd", EnvAssets)
	}
	return current
}

// Start starts an API server; the caller stops it.
func Start(o Options) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, o.APIs...) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register an API: %w", err)
		}
	}
	env := &envtest.Environment{CRDDirectoryPaths: o.CRDs, ErrorIfCRDPathMissing: true}
	env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "ServiceAccount")
	cfg, err := env.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start an API server with the programs of %s=%s: %w", EnvAssets, os.Getenv(EnvAssets), err), env.Stop())
	}
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	return &Cluster{Config: cfg, Client: c, env: env}, nil
}

// Stop ends the API server.
func (c *Cluster) Stop() error { return c.env.Stop() }

// Namespace makes a namespace for one test and returns its name.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := c.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("cannot create a namespace: %v", err)
	}
	return ns.Name
}

// Running is an operator that runs.
type Running struct {
	writes atomic.Int64
	stop   func() error
}

// Run runs the operator for the namespaces, or for all, until the test ends.
func (c *Cluster) Run(t testing.TB, o operator.Options, namespaces ...string) *Running {
	t.Helper()
	r := &Running{}
	cfg := rest.CopyConfig(c.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, r} })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- operator.Run(ctx, cfg, o, namespaces...) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return r
}

// Stop ends the operator and returns why it ended before, if it did. It may be called again.
func (r *Running) Stop() error { return r.stop() }

// Writes is how many requests the operator has made that change something.
func (r *Running) Writes() int64 { return r.writes.Load() }

// Rests waits until the operator writes no more, and fails the test if it does not come to rest: at rest an operator
// writes nothing.
func (r *Running) Rests(t testing.TB) {
	t.Helper()
	const calm = 2 * time.Second
	last, since := r.Writes(), time.Now()
	Eventually(t, "the operator comes to rest", func() error {
		if n := r.Writes(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < calm {
			return fmt.Errorf("%d writes so far", last)
		}
		return nil
	})
}

// counting counts requests that change something.
type counting struct {
	next http.RoundTripper
	of   *Running
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		c.of.writes.Add(1)
	}
	return c.next.RoundTrip(r)
}

// Eventually waits until check returns no error, and fails the test if that takes longer than Patience.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for err := check(); err != nil; err = check() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case <-look.C:
		}
	}
}

// Condition returns an error unless the condition has the status and the reason; an empty reason is any.
func Condition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	for _, c := range conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status && (reason == "" || c.Reason == reason) {
			return nil
		}
		return fmt.Errorf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
	}
	return fmt.Errorf("there is no condition %s", kind)
}
