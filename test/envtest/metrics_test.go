package envtest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/governor-dev/governor/kube/metricsauth"
)

// tokenOf creates a ServiceAccount and returns a token of it.
func tokenOf(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(t, api.Create(t.Context(), account))
	request := &authenticationv1.TokenRequest{}
	must(t, api.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// servedMetrics serves metrics as the installed operator does, with its permissions, and
// returns the address.
func servedMetrics(t *testing.T, c clock.PassiveClock) string {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate.UserName = "system:serviceaccount:governor-system:governor"
	caller, err := rest.HTTPClientFor(cfg)
	must(t, err)
	server, err := metricsserver.NewServer(metricsserver.Options{
		BindAddress: "127.0.0.1:0", SecureServing: true, FilterProvider: metricsauth.Provider(c),
	}, cfg, caller)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() { _ = server.Start(ctx) }()
	address := ""
	eventually(t, "metrics are served", func() error {
		if address = server.(interface{ GetBindAddr() string }).GetBindAddr(); address == "" {
			return errNotYet
		}
		return nil
	})
	return address
}

// scrape returns the status and the body.
func scrape(t *testing.T, url, authorization string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	scraper := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := scraper.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(said), err
}

// Metrics are served only to users with the role for it. The installed permissions suffice
// to check that.
func TestMetricsRequireAuthorization(t *testing.T) {
	install(t)
	namespace := newNamespace(t)
	reader, other := tokenOf(t, namespace, "reader"), tokenOf(t, namespace, "other")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader-" + namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "governor-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
	}
	must(t, api.Create(t.Context(), binding))
	now := clocktesting.NewFakePassiveClock(time.Now())
	address := servedMetrics(t, now)
	answers := func(path, authorization string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s with %.12q gets %d", path, authorization, want), func() error {
			now.SetTime(now.Now().Add(6 * time.Second)) // a refusal from before the role was known has expired
			status, said, err := scrape(t, "https://"+address+path, authorization)
			if err != nil || status != want {
				return fmt.Errorf("got %d, %.80q, %w", status, said, err)
			}
			if shows := strings.Contains(said, "go_goroutines"); shows != (want == http.StatusOK) {
				t.Errorf("with %d it says %.80q", status, said)
			}
			return nil
		})
	}
	answers("/metrics", "Bearer "+reader, http.StatusOK)
	answers("/metrics", "bearer  "+reader, http.StatusOK)
	answers("/metrics", "Bearer "+other, http.StatusForbidden)
	answers("/metrics", "", http.StatusUnauthorized)
	answers("/metrics", "Bearer", http.StatusUnauthorized)
	answers("/metrics", "Basic "+reader, http.StatusUnauthorized)
	answers("/metrics", "Bearer "+reader[:len(reader)-8]+"AAAAAAAA", http.StatusUnauthorized)
	if status, _, err := scrape(t, "http://"+address+"/metrics", "Bearer "+reader); err == nil && status == http.StatusOK {
		t.Error("metrics are served without encryption")
	}

	must(t, api.Delete(t.Context(), binding))
	status, _, err := scrape(t, "https://"+address+"/metrics", "Bearer "+reader)
	if err != nil || status != http.StatusOK {
		t.Errorf("an answer holds for a minute: %d, %v", status, err)
	}
	now.SetTime(now.Now().Add(time.Minute))
	answers("/metrics", "Bearer "+reader, http.StatusForbidden)
}
