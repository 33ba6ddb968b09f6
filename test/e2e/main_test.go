// Package e2e_test tests Governor on a real cluster, as users run it: installed from dist/install.yaml, with real pods
// on real kubelets, and with failures of machines. `make e2e` creates the cluster.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// patience is the timeout of a test's wait; most are much shorter. A wait that passes costs nothing, so it is long enough
// for a machine that is busy with something else.
const patience = 5 * time.Minute

// installFile is what users install.
const installFile = "../../dist/install.yaml"

var (
	api client.Client
	// localkube is the command that created the cluster, and can disturb it.
	localkube []string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	localkube = strings.Fields(os.Getenv("E2E_LOCALKUBE"))
	if len(localkube) == 0 {
		fmt.Println("skipped: `make e2e` makes a cluster for these tests; they hurt the one they get")
		return 0
	}
	ctrl.SetLogger(logr.Discard())
	if err := prepare(); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

func prepare() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, appv1.AddToScheme, cachev1.AddToScheme, etcdv1.AddToScheme, v1beta2.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	if api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return install()
}

// install installs the operator, or restores what a test removed.
func install() error {
	if _, err := kubectl("apply", "--server-side", "--force-conflicts", "-f", installFile); err != nil {
		return err
	}
	_, err := kubectl("-n", "governor-system", "rollout", "status", "deployment/governor", "--timeout=5m")
	return err
}

func kubectl(args ...string) (string, error) { return command("kubectl", args...) }

func hurt(t *testing.T, args ...string) {
	t.Helper()
	if _, err := command(localkube[0], append(localkube[1:], args...)...); err != nil {
		t.Fatal(err)
	}
}

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	within(t, patience, what, holds)
}

// within is eventually with another timeout.
func within(t *testing.T, patience time.Duration, what string, holds func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for last := errNotYet; ; {
		err := holds(ctx)
		if err == nil {
			t.Logf("%s: after %.1f s", what, time.Since(start).Seconds())
			return
		}
		if ctx.Err() == nil {
			last = err // later errors only report the timeout
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s: %v", patience, what, last)
		case <-tick.C:
		}
	}
}

// newNamespace creates a namespace for the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	if err := api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keepEvidence(t, ns.Name)
		err := api.Delete(context.Background(), ns)
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

var errNotYet = errors.New("not yet")
