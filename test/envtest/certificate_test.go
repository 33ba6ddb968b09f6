package envtest_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

func (a *adviser) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	var s *corev1.Secret
	eventually(t, "the Secret is there", func() (err error) {
		s, err = get(t, &corev1.Secret{}, a.options.Namespace, a.options.Secret)
		return err
	})
	return s
}

// trusts waits until the callers trust the CA in the Secret.
func (a *adviser) trusts(t *testing.T) {
	t.Helper()
	eventually(t, "the caBundle is that of the Secret", func() error {
		config := a.configuration()
		must(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		for _, hook := range config.Webhooks {
			if !bytes.Equal(hook.ClientConfig.CABundle, a.secret(t).Data["ca.crt"]) {
				return errNotYet
			}
		}
		return nil
	})
}

// naps waits until the rotator has finished its work and waits for its clock.
func (a *adviser) naps(t *testing.T) {
	t.Helper()
	eventually(t, "the rotator is idle", func() error {
		if !a.clock.HasWaiters() {
			return errNotYet
		}
		return nil
	})
}

func TestExpiredCertificateBlocksNoWriteAndIsRenewed(t *testing.T) {
	now := time.Now()
	a := newAdviser(t, now.AddDate(-1, 0, 0)) // so its certificates have expired
	a.trusts(t)
	c, e := user(t)
	must(t, c.Create(t.Context(), a.lone("m")))
	if said := e.take(); len(said) != 0 {
		t.Fatalf("the certificate works, so this test proves nothing: %q", said)
	}
	deploymentOf(t, a.namespace, "m")
	began := time.Now()
	a.clock.SetTime(now)
	a.advises(t)
	t.Logf("advice is back after %v", time.Since(began))
}

func TestBrokenCertificateSecretIsRepaired(t *testing.T) {
	a := newAdviser(t, time.Now())
	a.advises(t)
	cases := map[string]func(*corev1.Secret){
		"garbage": func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") },
		"foreign": func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("x") },
		"emptied": func(s *corev1.Secret) { s.Data = map[string][]byte{"tls.crt": nil, "tls.key": nil} },
	}
	for name, breakIt := range cases {
		t.Run(name, func(t *testing.T) {
			s := a.secret(t)
			breakIt(s)
			must(t, api.Update(t.Context(), s))
			a.replaced(t, s)
		})
	}
	t.Run("deleted", func(t *testing.T) {
		s := a.secret(t)
		must(t, api.Delete(t.Context(), s))
		a.replaced(t, s)
	})
	t.Run("caBundle removed", func(t *testing.T) {
		config := a.configuration()
		must(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		config.Webhooks[0].ClientConfig.CABundle = nil
		must(t, api.Update(t.Context(), config))
		a.trusts(t)
		a.advises(t)
	})
}

// replaced waits until the broken Secret is replaced and users receive warnings.
func (a *adviser) replaced(t *testing.T, broken *corev1.Secret) {
	t.Helper()
	eventually(t, "the Secret is repaired", func() error {
		if s := a.secret(t); s.ResourceVersion == broken.ResourceVersion || len(s.Data["tls.crt"]) < 2 || len(s.Data["ca.crt"]) < 2 {
			return errNotYet
		}
		return nil
	})
	a.trusts(t)
	a.advises(t)
}

// The test runs a whole renewal on a real API server, while a user sends requests
// continuously.
func TestNoCallFailsDuringRenewal(t *testing.T) {
	now := time.Now()
	a := newAdviser(t, now.AddDate(0, 0, -61))
	a.advises(t)
	stop := a.asksWithoutEnd(t)
	first := a.secret(t)
	a.naps(t)
	a.clock.SetTime(now)
	eventually(t, "the next certificate is prepared", func() error {
		if len(a.secret(t).Data["next.crt"]) == 0 {
			return errNotYet
		}
		return nil
	})
	a.trusts(t)
	if s := a.secret(t); !bytes.Equal(s.Data["tls.crt"], first.Data["tls.crt"]) {
		t.Error("the next certificate is served before API servers can trust it")
	}
	eventually(t, "the next certificate is promoted", func() error {
		a.clock.Step(time.Minute)
		if s := a.secret(t); len(s.Data["next.crt"]) != 0 || bytes.Equal(s.Data["tls.crt"], first.Data["tls.crt"]) {
			return errNotYet
		}
		return nil
	})
	if asked := stop(); asked < 10 {
		t.Errorf("asked %d times only", asked)
	}
}

// asksWithoutEnd sends requests until stop is called, and fails the test if one in ten gets no
// warning: on a busy machine an answer may take longer than the API server waits for it.
func (a *adviser) asksWithoutEnd(t *testing.T) (stop func() int64) {
	t.Helper()
	c, e := user(t)
	var over atomic.Bool
	var asked, silent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			if said := a.asks(t, c, e); !mentions(said, "spec.size is 1") {
				silent.Add(1)
			}
			asked.Add(1)
		}
	}()
	return func() int64 {
		enough := asked.Load() + 10 // also after the last change
		eventually(t, "it is asked some more", func() error {
			if asked.Load() < enough {
				return errNotYet
			}
			return nil
		})
		over.Store(true)
		<-done
		if n := silent.Load(); n > asked.Load()/10 {
			t.Errorf("%d of %d questions got no advice", n, asked.Load())
		}
		return asked.Load()
	}
}

func TestUnchangedCertificateCausesNoWrites(t *testing.T) {
	a := newAdviser(t, time.Now())
	a.advises(t)
	quiet(t, a.namespace, a.operator)
	before := a.writes.Load()
	for range 48 {
		a.naps(t)
		a.clock.Step(time.Hour)
	}
	a.naps(t)
	for _, line := range a.since(before) {
		t.Errorf("written at rest: %s", line)
	}
}

// The installed roles suffice for the certificate, and cover no other Secret.
func TestInstalledRolesSufficeForWebhook(t *testing.T) {
	install(t)
	asOperator.Store(t.Name(), true)
	a := newAdviser(t, time.Now(), func(a *adviser) {
		a.options.Namespace, a.options.Configuration = "governor-system", "governor"
	})
	a.advises(t)
	s := a.secret(t)
	must(t, api.Delete(t.Context(), s))
	a.replaced(t, s)
}

// Without permissions the operator works all the same, and logs that once.
func TestMissingPermissionsAreLoggedOnce(t *testing.T) {
	asOperator.Store(t.Name(), true)
	said := &ear{}
	a := newAdviser(t, time.Now(), func(a *adviser) {
		narrow(t, a.namespace)
		a.options.Namespace = newNamespace(t) // the Secret would be elsewhere
		a.log = funcr.New(func(_, args string) { said.HandleWarningHeader(0, "", args) }, funcr.Options{})
	})
	newMemcached(t, a.namespace, "m", 1)
	deploymentOf(t, a.namespace, "m")
	var lines []string
	eventually(t, "it is said", func() error {
		lines = append(lines, said.take()...)
		if !mentions(lines, "no advice") || !mentions(lines, "cannot list resource \\\"secrets") {
			return errNotYet
		}
		return nil
	})
	only := slices.DeleteFunc(lines, func(s string) bool { return !strings.Contains(s, "cannot list resource \\\"secrets") })
	if len(only) != 1 {
		t.Errorf("it is said %d times: %q", len(only), only)
	}
}

// A certificate that cert-manager or a user maintains is used as it is, also when its
// renewal is due.
func TestForeignCertificateIsLeftAlone(t *testing.T) {
	now := time.Now()
	data, err := certificate.Standalone{CommonName: "ca", Names: []string{"localhost"}}.Issue(now.AddDate(0, 0, -80))
	must(t, err)
	theirs := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: data}
	a := newAdviser(t, now, func(a *adviser) {
		theirs.Name, theirs.Namespace = a.options.Secret, a.namespace
		theirs.Annotations = map[string]string{"cert-manager.io/certificate-name": "theirs"}
		must(t, api.Create(t.Context(), theirs))
	})
	a.advises(t)
	config := a.configuration()
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	config.Annotations = map[string]string{lifecycle.AnnotationPaused: "true"}
	config.Webhooks[0].ClientConfig.CABundle = nil
	must(t, api.Update(t.Context(), config))
	quiet(t, a.namespace, a.operator)
	a.naps(t)
	if s := a.secret(t); s.ResourceVersion != theirs.ResourceVersion {
		t.Error("the Secret was written")
	}
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	if len(config.Webhooks[0].ClientConfig.CABundle) != 0 {
		t.Error("the caBundle was written")
	}
}

// The fields that the operator writes into the configuration must not prevent the
// installation of a later release.
func TestLaterReleaseInstallsOverCABundle(t *testing.T) {
	a := newAdviser(t, time.Now())
	a.trusts(t)
	later := a.manifest(t)
	hook := later.Object["webhooks"].([]any)[0].(map[string]any)
	hook["rules"] = append(hook["rules"].([]any), map[string]any{
		"apiGroups": []any{"later.example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"laters"},
		"operations": []any{"CREATE"},
	})
	hook["clientConfig"].(map[string]any)["url"] = fmt.Sprintf("https://localhost:%d/later", a.port)
	for _, u := range []*unstructured.Unstructured{later, a.manifest(t)} {
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
	}
	a.trusts(t)
	a.advises(t)
}

// The webhook configurations are cluster-scoped: the one that another install serves stays as it
// is, one line of the log names that install, and this one is not ready.
func TestConfigurationOfAnotherInstallIsLeftAlone(t *testing.T) {
	said := &ear{}
	a := newAdviser(t, time.Now(), func(a *adviser) {
		a.log = funcr.New(func(_, args string) { said.HandleWarningHeader(0, "", args) }, funcr.Options{})
	})
	a.advises(t)
	other := a.configuration()
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	other.Webhooks[0].ClientConfig.URL = new("https://governor-webhook.governor-two.svc/advise")
	other.Webhooks[0].ClientConfig.CABundle = a.foreign(t)
	must(t, api.Update(t.Context(), other))
	var lines []string
	eventually(t, "the log names the other install", func() error {
		lines = append(lines, said.take()...)
		if !mentions(lines, "it calls governor-webhook.governor-two.svc") {
			return errNotYet
		}
		return nil
	})
	a.naps(t)
	lines = slices.DeleteFunc(append(lines, said.take()...), func(s string) bool { return !strings.Contains(s, "governor-two") })
	after := a.configuration()
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(after), after))
	if after.Generation != other.Generation || len(lines) != 1 {
		t.Errorf("generation %d, want %d; the log: %q", after.Generation, other.Generation, lines)
	}
}
