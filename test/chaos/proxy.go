package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

const (
	// slowness is the delay of each answer of a slow API server.
	slowness = 2 * time.Second
	// watchesLast is how long a watch lasts while watches are dropped.
	watchesLast = 2 * time.Second
)

// silent is the log of connections that break: the adversary breaks them.
var silent = log.New(io.Discard, "", 0)

// proxy stands between the operator and the API server, and disturbs what passes. It passes the operator's own token on,
// and has no rights itself.
type proxy struct {
	// Address is what the operator connects to, and CA the certificate that it trusts.
	Address string
	CA      []byte

	server   *http.Server
	forward  *httputil.ReverseProxy
	fault    atomic.Value // of string: a detail of chaos.APIServer, or ""
	requests atomic.Uint64

	gate sync.RWMutex // held while the operator is killed: no other write passes meanwhile
	trap *trap        // guarded by mu

	mu        sync.Mutex
	watches   map[context.Context]context.CancelFunc
	deletions map[string]time.Time // by namespace, resource and name
}

// startProxy listens at the address of the API server, at another port.
func startProxy(config *rest.Config) (*proxy, error) {
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(upstream.Hostname(), "0"))
	if err != nil {
		return nil, fmt.Errorf("the proxy before the API server: %w", err)
	}
	ca, key, err := cert.GenerateSelfSignedCertKey(upstream.Hostname(), []net.IP{net.ParseIP(upstream.Hostname())}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(ca, key)
	if err != nil {
		return nil, err
	}
	p := &proxy{Address: "https://" + listener.Addr().String(), CA: ca, watches: map[context.Context]context.CancelFunc{}, deletions: map[string]time.Time{}}
	p.fault.Store("")
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // events of a watch pass at once
		ErrorLog:      silent,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as without an API server
	}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: silent,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Disturb begins the fault, and "" ends it. Dropped watches drop at once.
func (p *proxy) Disturb(detail string) {
	p.fault.Store(detail)
	if detail != chaos.APIDropsWatches {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.watches {
		end()
	}
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, writes := p.requests.Add(1), r.Method != http.MethodGet
	p.record(r)
	if writes {
		if p.springs(r) {
			p.killAfter(r)
			panic(http.ErrAbortHandler)
		}
		p.gate.RLock()
		defer p.gate.RUnlock()
	}
	switch fault := p.fault.Load(); {
	case fault == chaos.APIThrottles && n%2 == 0:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		return
	case fault == chaos.APIConflicts && writes && n%2 == 0:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	case fault == chaos.APIFails && n%3 == 0:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		return
	case fault == chaos.APILosesAnswers && writes && n%3 == 0:
		p.forward.ServeHTTP(nowhere{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case fault == chaos.APISlow:
		pause(r.Context(), slowness)
	}
	if r.URL.Query().Has("watch") {
		ctx, end := p.watch(r.Context())
		defer end()
		r = r.WithContext(ctx)
	}
	p.forward.ServeHTTP(w, r)
}

// deletePath matches the request that deletes or evicts one namespaced object.
var deletePath = regexp.MustCompile(`/namespaces/([^/]+)/([^/]+)/([^/]+)(/eviction)?$`)

// record keeps the time of a request that deletes an object, unless it is a dry run.
func (p *proxy) record(r *http.Request) {
	at := deletePath.FindStringSubmatch(r.URL.Path)
	if at == nil || r.URL.Query().Has("dryRun") || r.Method != http.MethodDelete && at[4] == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deletions[at[1]+"/"+at[2]+"/"+at[3]] = time.Now()
}

// deletedAt is when the operator last deleted the object, such as ns/pods/etcd-0-0; zero for never.
func (p *proxy) deletedAt(object string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deletions[object]
}

// watch is the context of a watch, which ends early while watches are dropped.
func (p *proxy) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if p.fault.Load() == chaos.APIDropsWatches {
		ctx, cancel = context.WithTimeout(ctx, watchesLast)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[ctx] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, ctx)
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: "the adversary answers so", Reason: reason, Code: int32(code),
	})
}

// nowhere is the answer that gets lost after the API server has done what was asked.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}
