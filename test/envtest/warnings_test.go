package envtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube/conversion"
	"github.com/governor-dev/governor/kube/webhookcert"
	"github.com/governor-dev/governor/test/fakeapp"
)

// nowhere is a port on which no process listens.
const nowhere = 1

// callsTo redirects the calls to an installed object to a port of this machine: there is
// no Service network.
func callsTo(port int, u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, hook := range hooks {
			redirect(port, hook.(map[string]any))
		}
		u.Object["webhooks"] = hooks
	case "CustomResourceDefinition":
		if hook, ok, _ := unstructured.NestedMap(u.Object, "spec", "conversion", "webhook"); ok {
			redirect(port, hook)
			_ = unstructured.SetNestedMap(u.Object, hook, "spec", "conversion", "webhook")
		}
	}
}

func redirect(port int, hook map[string]any) {
	path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
	hook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", port, path)}
}

// adviser is an operator with a webhook, for one namespace.
type adviser struct {
	*operator
	namespace string
	clock     *clocktesting.FakeClock
	serving   *webhookcert.Serving
	options   webhookcert.Options
	port      int
	log       logr.Logger
	manage    func(*ctrl.Options)
}

// newAdviser runs an adviser at the time. Its configuration covers only its namespace and
// is named after it, so that tests do not interfere.
func newAdviser(t *testing.T, now time.Time, edits ...func(*adviser)) *adviser {
	t.Helper()
	a := &adviser{
		namespace: newNamespace(t), port: freePort(t), serving: webhookcert.NewServing(),
		clock: clocktesting.NewFakeClock(now), log: verbosity(), manage: func(*ctrl.Options) {},
	}
	a.options = webhookcert.Options{
		Namespace: a.namespace, Secret: "governor-webhook-certificate", Configuration: a.namespace,
		Names: []string{"localhost"}, Clock: a.clock,
	}
	for _, edit := range edits {
		edit(a)
	}
	a.configure(t)
	a.run(t)
	return a
}

func (a *adviser) run(t *testing.T) {
	t.Helper()
	a.operator = startOperator(t, a.namespace, func(o *ctrl.Options, e *engine.Options) {
		o.WebhookServer = a.serving.Server(webhook.Options{Port: a.port, Host: "localhost"})
		o.Logger, e.Webhooks = a.log, true
		a.manage(o)
	})
	a.mgr.GetWebhookServer().Register(conversion.Path, conversions())
	rotator, err := webhookcert.New(a.mgr, a.serving, a.options)
	must(t, err)
	must(t, a.mgr.Add(rotator))
}

// configure applies the webhook configuration as kubectl does.
func (a *adviser) configure(t *testing.T) {
	t.Helper()
	for _, u := range a.manifests(t) {
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), u) })
	}
}

// manifest returns the webhook configuration for warnings.
func (a *adviser) manifest(t *testing.T) *unstructured.Unstructured { return a.manifests(t)[0] }

// manifests returns all webhook configurations of the operator.
func (a *adviser) manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile("../../config/manager/webhook.yaml")
	must(t, err)
	var all []*unstructured.Unstructured
	for _, doc := range bytes.Split(raw, []byte("---\n"))[1:] { // skips the Service
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(doc, &u.Object))
		u.SetName(a.options.Configuration)
		callsTo(a.port, u)
		for _, hook := range u.Object["webhooks"].([]any) {
			a.confine(hook.(map[string]any))
		}
		all = append(all, u)
	}
	return all
}

// confine limits the webhook to the namespace, and adds rings.
func (a *adviser) confine(hook map[string]any) {
	hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: a.namespace}}
	hook["rules"] = append(hook["rules"].([]any), map[string]any{
		"apiGroups": []any{fakeapp.GroupVersion.Group}, "apiVersions": []any{fakeapp.GroupVersion.Version}, "resources": []any{"rings"},
		"operations": []any{"CREATE", "UPDATE"}, "scope": "Namespaced",
	})
}

func (a *adviser) configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: a.options.Configuration}}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// ear records the warnings that a user receives.
type ear struct {
	mu    sync.Mutex
	heard []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (e *ear) HandleWarningHeader(_ int, _, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, text)
}

func (e *ear) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.heard = nil }()
	return e.heard
}

// user returns a client that records warnings.
func user(t *testing.T) (client.Client, *ear) {
	t.Helper()
	e, cfg := &ear{}, rest.CopyConfig(config)
	cfg.WarningHandler = e
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return c, e
}

func (a *adviser) lone(name string) *cachev1.Memcached {
	m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
	m.Spec.Size = 1
	return m
}

// asks returns the warnings of a dry run with one server.
func (a *adviser) asks(t *testing.T, c client.Client, e *ear) []string {
	t.Helper()
	must(t, c.Create(t.Context(), a.lone("asked"), client.DryRunAll))
	return e.take()
}

// advises waits until users receive warnings.
func (a *adviser) advises(t *testing.T) {
	t.Helper()
	c, e := user(t)
	eventually(t, "users are advised", func() error {
		if said := a.asks(t, c, e); !mentions(said, "spec.size is 1") {
			return fmt.Errorf("the warnings are %q", said)
		}
		return nil
	})
}

func mentions(said []string, words string) bool {
	return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, words) })
}

func TestUsersReceiveWarnings(t *testing.T) {
	a := newAdviser(t, time.Now())
	a.advises(t)
	c, e := user(t)
	m := a.lone("m")
	must(t, c.Create(t.Context(), m))
	if said := e.take(); !mentions(said, "spec.size is 1") {
		t.Errorf("at creation, the warnings are %q", said)
	}
	deploymentOf(t, a.namespace, "m")
	m, err := get(t, &cachev1.Memcached{}, a.namespace, "m")
	must(t, err)
	base := m.DeepCopy()
	m.Spec.Version = "1.6.38"
	must(t, c.Patch(t.Context(), m, client.MergeFrom(base), client.DryRunAll))
	if said := e.take(); !mentions(said, "spec.version replaces all servers (1)") {
		t.Errorf("before a change the warnings are %q", said)
	}
	m.Labels = map[string]string{"team": "a"}
	m.Spec.Version = ""
	must(t, c.Patch(t.Context(), m, client.MergeFrom(base)))
	if said := e.take(); len(said) != 0 {
		t.Errorf("a change of a label gives no warning, but the warnings are %q", said)
	}
}

// A user's write does not wait for an unavailable operator, nor for its webhook.
func TestWritesDoNotWaitForUnavailableWebhook(t *testing.T) {
	a := newAdviser(t, time.Now())
	a.advises(t)
	c, e := user(t)
	with := fastest(t, func() { a.asks(t, c, e) })
	a.stop()
	without := fastest(t, func() {
		if said := a.asks(t, c, e); len(said) != 0 {
			t.Errorf("the operator is down, but the warnings are %q", said)
		}
	})
	must(t, api.Delete(t.Context(), a.configuration()))
	alone := fastest(t, func() { a.asks(t, c, e) })
	t.Logf("a dry run takes %v with advice, %v with the operator away, %v without webhook", with, without, alone)
}

// fastest returns the shortest of several runs, to exclude other load on the machine.
func fastest(t *testing.T, run func()) time.Duration {
	t.Helper()
	best := time.Hour
	for range 20 {
		began := time.Now()
		run()
		best = min(best, time.Since(began))
	}
	return best
}

var errNotYet = errors.New("not yet")
