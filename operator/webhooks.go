package operator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/governor-dev/governor/kube/conversion"
	"github.com/governor-dev/governor/kube/webhookcert"
)

// namespaceFile has the namespace of the pod that this process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// webhooks are the flags about advice at kubectl apply, and about conversion.
type webhooks struct {
	on        bool
	port      int
	secret    string
	namespace string
	serving   *webhookcert.Serving
	ready     healthz.Checker // nil without webhooks
	ending    <-chan struct{} // see [lingering]
}

func (w *webhooks) define(f *pflag.FlagSet, name string) {
	f.BoolVar(&w.on, "webhooks", true, "advise users at kubectl apply, and convert legacy objects; only in a pod, for the API server must reach it")
	f.IntVar(&w.port, "webhook-port", webhook.DefaultPort, "where to serve the webhooks")
	f.StringVar(&w.secret, "webhook-certificate-secret", name+"-webhook-certificate",
		"Secret in the operator's namespace that keeps the webhooks' certificate; one issued by cert-manager is used as it is")
}

// locate finds out where API servers would call. Outside of a pod there is no such
// place, so there are no webhooks.
func (w *webhooks) locate() error {
	if !w.on {
		return nil
	}
	raw, err := os.ReadFile(namespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		w.on = false
		ctrl.Log.Info("no advice at kubectl apply and no conversion of legacy objects: this process runs in no pod, so the API server cannot call it")
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find the operator's namespace: %w; --webhooks=false runs without it", err)
	}
	w.namespace = strings.TrimSpace(string(raw))
	return nil
}

// configure makes a TLS server show the certificate that the rotator loads.
func (w *webhooks) configure(c *tls.Config) { w.serving.Configure(c) }

// server serves the certificate that the rotator loads.
func (w *webhooks) server() webhook.Server {
	w.serving = webhookcert.NewServing()
	return lingering{w.serving.Server(webhook.Options{Port: w.port}), w.ending}
}

// keep lets the manager keep the certificate, and convert. A scoped operator watches only some
// namespaces.
func (w *webhooks) keep(mgr manager.Manager, o Options, scoped bool) error {
	if !w.on {
		return nil
	}
	rotator, err := webhookcert.New(mgr, w.serving, webhookcert.Options{
		Program: o.Name, Namespace: w.namespace, Secret: w.secret, Configuration: o.WebhookConfiguration,
		Scoped: scoped, Definitions: o.Converted, Names: []string{o.WebhookService + "." + w.namespace + ".svc", o.Name + "-metrics." + w.namespace + ".svc"},
	})
	if err != nil {
		return fmt.Errorf("cannot keep the webhooks' certificate: %w", err)
	}
	w.ready = rotator.Ready
	if o.Conversions != nil {
		mgr.GetWebhookServer().Register(conversion.Path, o.Conversions)
	}
	return mgr.Add(rotator)
}

// checks are those of readiness.
func (w *webhooks) checks() map[string]healthz.Checker {
	checks := map[string]healthz.Checker{"ping": healthz.Ping}
	if w.ready != nil {
		checks["webhook-certificate"] = w.ready
	}
	return checks
}
