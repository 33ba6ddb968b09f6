package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/certificate"
)

// asked is what kubectl prints when a user asks, without effect, for one server.
func (i *instance) asked() (string, error) {
	return command("sh", "-c", fmt.Sprintf(`kubectl -n %s apply --dry-run=server -f - 2>&1 <<END
{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: asked}, spec: {size: 1}}
END`, i.key.Namespace))
}

func (i *instance) advised(context.Context) error {
	said, err := i.asked()
	if err != nil || !strings.Contains(said, "Warning: spec.size is 1") {
		return fmt.Errorf("users hear %q: %w", said, err)
	}
	return nil
}

// Users get warnings while replicas start and stop and the certificate is lost. Their requests
// do not wait while no replica can answer.
func TestWarningsWhileReplicasChange(t *testing.T) {
	i := newInstance(t)
	eventually(t, "users are advised", i.advised)
	must(t, "-n", "governor-system", "rollout", "restart", "deployment/governor")
	for range 20 {
		if err := i.advised(t.Context()); err != nil {
			t.Errorf("during a rollout: %v", err)
		}
	}
	must(t, "-n", "governor-system", "rollout", "status", "deployment/governor", "--timeout=5m")
	must(t, "-n", "governor-system", "delete", "secret/governor-webhook-certificate")
	eventually(t, "users are advised with another certificate", i.advised)
}

// webhookSecret returns the Secret of the webhook's certificate, and a configuration that trusts it.
func webhookSecret(t *testing.T) (*corev1.Secret, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	secret, config := &corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "governor-system", Name: "governor-webhook-certificate"}, secret); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "governor"}, config); err != nil {
		t.Fatal(err)
	}
	return secret, config
}

// expire puts a certificate in the Secret that expired long ago, with an authority that every client trusts.
func expire(t *testing.T) []byte {
	t.Helper()
	eventually(t, "there is a certificate", func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: "governor-system", Name: "governor-webhook-certificate"}, &corev1.Secret{})
	})
	names := []string{"governor-webhook.governor-system.svc"}
	data, err := certificate.Standalone{CommonName: "ca", Names: names}.Issue(time.Now().AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, config := webhookSecret(t)
		secret.Data, config.Webhooks[0].ClientConfig.CABundle = data, data["ca.crt"]
		if err := api.Update(t.Context(), config); err != nil {
			return err
		}
		return api.Update(t.Context(), secret)
	})
	if err != nil {
		t.Fatal(err)
	}
	return data["tls.crt"]
}

// replaced reports whether another certificate is stored and trusted. Meanwhile no user may be delayed.
func (i *instance) replaced(t *testing.T, useless []byte) error {
	t.Helper()
	i.heldUp(t)
	secret, config := webhookSecret(t)
	if bytes.Equal(secret.Data["tls.crt"], useless) || !bytes.Equal(secret.Data["ca.crt"], config.Webhooks[0].ClientConfig.CABundle) {
		return errNotYet
	}
	return nil
}

// heldUp fails if a request is delayed or refused.
func (i *instance) heldUp(t *testing.T) {
	t.Helper()
	began := time.Now()
	_, err := i.asked()
	if took := time.Since(began); err != nil || took > 3*time.Second {
		t.Errorf("kubectl apply took %s, %v", took, err)
	}
}

// TestExpiredWebhookCertificateIsReplaced: at once by a running operator, and by one that was down meanwhile.
func TestExpiredWebhookCertificateIsReplaced(t *testing.T) {
	i := newInstance(t)
	eventually(t, "users are advised", i.advised)
	useless, began := expire(t), time.Now()
	eventually(t, "the certificate is replaced", func(context.Context) error { return i.replaced(t, useless) })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the expired certificate was kept for %s", took)
	}
	eventually(t, "users are advised again", i.advised)

	must(t, "-n", "governor-system", "scale", "deployment/governor", "--replicas=0")
	t.Cleanup(func() {
		if err := install(); err != nil {
			t.Error(err)
		}
	})
	must(t, "-n", "governor-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=governor", "--timeout=5m")
	useless = expire(t)
	for range 5 {
		i.heldUp(t)
	}
	if err := i.replaced(t, useless); err == nil {
		t.Error("the certificate was replaced without an operator: the test is invalid")
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the certificate is replaced by an operator that comes back", func(context.Context) error { return i.replaced(t, useless) })
	eventually(t, "users are advised by an operator that comes back", i.advised)
}
