package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scraper trusts every certificate; TestMetricsRequireRole looks at them.
var scraper = http.Client{Transport: &http.Transport{
	DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
}}

func scrape(address, token string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodGet, address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return scraper.Do(req)
}

// readsMetrics is a token that may read the operator's metrics.
var readsMetrics = sync.OnceValues(func() (string, error) {
	ctx, name := context.Background(), "e2e-metrics-reader"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "governor-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
	}
	if err := client.IgnoreAlreadyExists(api.Create(ctx, binding)); err != nil {
		return "", err
	}
	return tokenOf(ctx, name)
})

// tokenOf is a token of the ServiceAccount, which it creates if needed.
func tokenOf(ctx context.Context, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := client.IgnoreAlreadyExists(api.Create(ctx, account)); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{}
	err := api.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

// TestMetricsRequireRole: the installed operator serves its metrics, with a verifiable certificate, only to clients
// with the role.
func TestMetricsRequireRole(t *testing.T) {
	reader, err := readsMetrics()
	if err != nil {
		t.Fatal(err)
	}
	other, err := tokenOf(t.Context(), "e2e-no-reader")
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "governor-system", Name: "governor-webhook-certificate"}, kept); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(kept.Data["ca.crt"])
	for _, address := range clusterOperators(t) {
		for token, want := range map[string]int{reader: http.StatusOK, other: http.StatusForbidden, "": http.StatusUnauthorized} {
			eventually(t, address+" answers "+http.StatusText(want), func(context.Context) error {
				answer, err := scrape(address, token)
				if err != nil {
					return err
				}
				defer func() { _ = answer.Body.Close() }()
				_, err = answer.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: "governor-metrics.governor-system.svc"})
				if err == nil && answer.StatusCode != want {
					err = errNotYet
				}
				return err
			})
		}
	}
}
