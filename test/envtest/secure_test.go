package envtest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// secured are the Secrets of a secure ring called r.
var secured = []string{"r-ca", "r-member", "r-client"}

func newSecureRing(t *testing.T, namespace string) {
	t.Helper()
	installRings(t)
	eventually(t, "rings are served", func() error {
		return api.Create(t.Context(), &fakeapp.Ring{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: fakeapp.Spec{Size: 1, Secure: true},
		})
	})
}

func secretOf(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	s, err := get(t, &corev1.Secret{}, namespace, name)
	must(t, err)
	return s
}

// trustEachOther checks that the member and the client would accept each other with their
// present Secrets.
func trustEachOther(t *testing.T, namespace string) error {
	t.Helper()
	member, err := get(t, &corev1.Secret{}, namespace, "r-member")
	if err != nil {
		return err
	}
	caller, err := get(t, &corev1.Secret{}, namespace, "r-client")
	if err != nil {
		return err
	}
	return errors.Join(accepts(caller, member, x509.ExtKeyUsageServerAuth), accepts(member, caller, x509.ExtKeyUsageClientAuth))
}

func accepts(server, client *corev1.Secret, usage x509.ExtKeyUsage) error {
	pair, err := tls.X509KeyPair(client.Data["tls.crt"], client.Data["tls.key"])
	if err != nil {
		return fmt.Errorf("%s: %w", client.Name, err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.Data["ca.crt"])
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: pool, CurrentTime: pair.Leaf.NotBefore.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// secrets returns the writes of Secrets, by name.
func (o *operator) secrets() []string {
	var names []string
	for _, line := range o.since(0) {
		if _, name, ok := strings.Cut(line, "/secrets/"); ok {
			names = append(names, name)
		}
	}
	return names
}

func TestCertificatesAreCreatedOnceAndComplete(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	must(t, trustEachOther(t, namespace))
	quiet(t, namespace, op)
	if writes := op.secrets(); len(writes) != len(secured) || writes[0] != "r-ca" {
		t.Errorf("each Secret is written once, complete, the authority first: %v", writes)
	}
	op.stop()
	again := startOperator(t, namespace)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	quiet(t, namespace, again)
	if writes := again.secrets(); len(writes) != 0 {
		t.Errorf("another operator writes no Secret: %v", writes)
	}
}

func TestDamagedCertificatesAreRepaired(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	authority, member := secretOf(t, namespace, "r-ca"), secretOf(t, namespace, "r-member")

	must(t, api.Delete(t.Context(), member))
	eventually(t, "a deleted Secret comes back", func() error { return trustEachOther(t, namespace) })

	broken := secretOf(t, namespace, "r-client")
	broken.Data["tls.key"] = member.Data["tls.key"]
	must(t, api.Update(t.Context(), broken, client.FieldOwner("kubectl-edit")))
	eventually(t, "an edited Secret is repaired", func() error { return trustEachOther(t, namespace) })

	hidden := secretOf(t, namespace, "r-ca")
	hidden.Labels = nil
	must(t, api.Update(t.Context(), hidden, client.FieldOwner("kubectl-edit")))
	eventually(t, "its label comes back", func() error {
		if secretOf(t, namespace, "r-ca").Labels[lifecycle.LabelApp] == "" {
			return errNotYet
		}
		return nil
	})
	quiet(t, namespace, op)
	if !bytes.Equal(secretOf(t, namespace, "r-ca").Data["tls.key"], authority.Data["tls.key"]) {
		t.Error("an authority that the cache did not show was made a second time")
	}
}

func TestLostAuthorityStaysTrusted(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	authority, member := secretOf(t, namespace, "r-ca"), secretOf(t, namespace, "r-member")
	must(t, api.Delete(t.Context(), authority))
	eventually(t, "another authority is trusted beside it", func() error {
		all, err := cert.ParseCertsPEM(secretOf(t, namespace, "r-member").Data["ca.crt"])
		if len(all) != 2 {
			return fmt.Errorf("%d are trusted: %w", len(all), err)
		}
		return nil
	})
	quiet(t, namespace, op)
	must(t, trustEachOther(t, namespace))
	if !bytes.Equal(secretOf(t, namespace, "r-member").Data["tls.crt"], member.Data["tls.crt"]) {
		t.Error("a certificate in use must be kept")
	}
	must(t, api.Delete(t.Context(), member))
	eventually(t, "the new authority signs", func() error { return trustEachOther(t, namespace) })
}

func TestForeignSecretIsNeitherReadNorWritten(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r-ca"}, Data: map[string][]byte{"tls.crt": []byte("mine")},
	}
	must(t, api.Create(t.Context(), foreign))
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "NameTaken")
	if now := secretOf(t, namespace, "r-ca"); now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was touched: %v", now.ManagedFields)
	}
	if _, err := get(t, &corev1.Secret{}, namespace, "r-member"); !apierrors.IsNotFound(err) {
		t.Errorf("what it would have to sign cannot be made: %v", err)
	}
	_, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err) // objects that need no certificate are applied all the same
	must(t, api.Delete(t.Context(), foreign))
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	must(t, trustEachOther(t, namespace))
	quiet(t, namespace, op)
}

// The second operator's clock is seconds before two thirds of a year have passed.
func TestCertificateIsRenewedWhenDue(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	op.stop()
	old := leafOf(t, namespace, "r-member")
	due := old.NotBefore.Add(old.NotAfter.Sub(old.NotBefore) * 2 / 3)
	ahead := time.Until(due.Add(-3 * time.Second))
	op = startOperator(t, namespace, func(_ *ctrl.Options, e *engine.Options) {
		e.Now = func() time.Time { return time.Now().Add(ahead) }
	})
	eventually(t, "it is renewed", func() error {
		if leafOf(t, namespace, "r-member").Equal(old) {
			return errNotYet
		}
		return nil
	})
	if minted := leafOf(t, namespace, "r-member").NotBefore.Add(time.Hour); minted.Before(due.Truncate(time.Second)) {
		t.Errorf("it was renewed at %v, due at %v", minted, due)
	}
	must(t, trustEachOther(t, namespace))
	eventually(t, "it is announced", func() error { return announced(t, namespace, "r-member", "NearEnd") })
	quiet(t, namespace, op)
	if slices.Contains(op.secrets(), "r-ca") {
		t.Error("the authority has years left")
	}
}

func leafOf(t *testing.T, namespace, name string) *x509.Certificate {
	t.Helper()
	all, err := cert.ParseCertsPEM(secretOf(t, namespace, name).Data["tls.crt"])
	must(t, err)
	return all[0]
}

func announced(t *testing.T, namespace string, words ...string) error {
	t.Helper()
	events := &eventsv1.EventList{}
	must(t, api.List(t.Context(), events, client.InNamespace(namespace)))
	for _, e := range events.Items {
		missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Note, w) })
		if e.Reason == "CertificatesIssued" && !missing {
			return nil
		}
	}
	return fmt.Errorf("no event says %v, there are %d", words, len(events.Items))
}

// TestPauseNamesCertificatesThatAreDue: a paused object renews nothing, and reports that.
func TestPauseNamesCertificatesThatAreDue(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newSecureRing(t, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	pause := func(value string) {
		r := &fakeapp.Ring{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, lifecycle.AnnotationPaused, value)
		must(t, api.Patch(t.Context(), r, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	pause("true")
	ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	must(t, api.Delete(t.Context(), secretOf(t, namespace, "r-client")))
	ringReaches(t, namespace, "r", lifecycle.ConditionCertificatesDue, metav1.ConditionTrue, lifecycle.ConditionPaused)
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	if c := apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.ConditionCertificatesDue); !strings.Contains(c.Message, "Secrets r-client.") {
		t.Error(c.Message)
	}
	pause("false")
	eventually(t, "the certificate is there and the condition is gone", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil || apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.ConditionCertificatesDue) != nil {
			return errors.Join(err, errNotYet)
		}
		return trustEachOther(t, namespace)
	})
}
