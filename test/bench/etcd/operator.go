package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseName is the leader election lease of the operator.
const leaseName = "governor.governor.dev"

// reading is the work of the operator's leader up to one moment.
type reading struct {
	at            time.Time
	leader        string
	reads, writes float64 // without renewals of the lease
	cpu           float64 // seconds
	rss           float64 // bytes
}

// effort is the work between two readings.
type effort struct {
	Seconds    float64 `json:"seconds"`
	Reads      int     `json:"reads"`
	Writes     int     `json:"writes"`
	CPUSeconds float64 `json:"cpuSeconds"`
	RSS        float64 `json:"rssBytes"`
}

func (e effort) cpuPercent() float64 { return 100 * e.CPUSeconds / e.Seconds }

// since fails if another replica leads now, because the counters of two processes do not
// compare.
func (r reading) since(before reading) (effort, error) {
	if r.leader != before.leader {
		return effort{}, fmt.Errorf("the operator's leader changed from %s to %s under way", before.leader, r.leader)
	}
	return effort{
		Seconds: r.at.Sub(before.at).Seconds(), Reads: int(r.reads - before.reads), Writes: int(r.writes - before.writes),
		CPUSeconds: r.cpu - before.cpu, RSS: r.rss,
	}, nil
}

// read reads the leader's metrics right after a renewal of its lease. The next renewal is
// seconds away, so renewals can be separated from other writes.
func (s *testEnv) read(ctx context.Context) (reading, error) {
	before := s.renewals.Load()
	err := s.until(ctx, "the operator's leader has renewed its lease", func(context.Context) error {
		if s.renewals.Load() == before {
			return errors.New("the lease has not been renewed")
		}
		return nil
	})
	if err != nil {
		return reading{}, err
	}
	renewals := s.renewals.Load()
	pod, err := s.leader(ctx)
	if err != nil {
		return reading{}, err
	}
	metrics, err := s.scrape(ctx, net.JoinHostPort(pod.Status.PodIP, "8443"))
	if err != nil {
		return reading{}, fmt.Errorf("cannot read the metrics of %s: %w", pod.Name, err)
	}
	r := reading{
		at: time.Now(), leader: pod.Name,
		cpu: total(metrics["process_cpu_seconds_total"], everything), rss: total(metrics["process_resident_memory_bytes"], everything),
		reads:  total(metrics["rest_client_requests_total"], isRead),
		writes: total(metrics["rest_client_requests_total"], isWrite) - float64(renewals),
	}
	return r, nil
}

func (s *testEnv) leader(ctx context.Context) (*corev1.Pod, error) {
	lease := &coordinationv1.Lease{}
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: leaseName}, lease); err != nil {
		return nil, fmt.Errorf("no operator leads: %w", err)
	}
	if lease.Spec.HolderIdentity == nil {
		return nil, errors.New("no operator leads")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod := &corev1.Pod{}
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, pod)
	return pod, err
}

// scraper accepts any certificate: the server is on this machine.
var scraper = http.Client{Transport: &http.Transport{
	DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
}}

// reader is a ServiceAccount that may read the operator's metrics.
const reader = "bench-metrics-reader"

// token returns a token of the reader.
func (s *testEnv) token(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: reader}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "governor-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: operatorNamespace, Name: reader}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := client.IgnoreAlreadyExists(s.Create(ctx, obj)); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	err := s.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

func (s *testEnv) scrape(ctx context.Context, address string) (map[string]*dto.MetricFamily, error) {
	token, err := s.token(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := scraper.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(resp.Body)
}

// total adds up the wanted series.
func total(family *dto.MetricFamily, wanted func(method string) bool) float64 {
	sum := 0.0
	for _, m := range family.GetMetric() {
		if wanted(method(m)) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func method(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == "method" {
			return l.GetValue()
		}
	}
	return ""
}

func everything(string) bool { return true }

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func isWrite(method string) bool { return !isRead(method) }
