package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

func TestCertificateRequest(t *testing.T) {
	want := lifecycle.Certificate{
		Authority: "ca", CommonName: "m", DNSNames: []string{"m.svc"}, IPAddresses: []string{"::1"}, Server: true,
	}
	secret := want.Secret("s", map[string]string{"a": "b"})
	got, asks, err := lifecycle.CertificateOf(secret)
	if diff := cmp.Diff(want, got); diff != "" || !asks || err != nil {
		t.Errorf("what is written must be read: asks = %v, %v: %s", asks, err, diff)
	}
	if len(secret.Data) != 0 || secret.Labels["a"] != "b" || secret.Name != "s" {
		t.Errorf("the recipe alone has no data: %v", secret)
	}
	if _, asks, err := lifecycle.CertificateOf(&corev1.Secret{}); asks || err != nil {
		t.Errorf("a Secret without the annotation asks for nothing: %v, %v", asks, err)
	}
	secret.Annotations[lifecycle.AnnotationCertificate] = "{"
	if _, asks, err := lifecycle.CertificateOf(secret); !asks || err == nil {
		t.Error("a recipe that cannot be read is a mistake to be told")
	}
}
