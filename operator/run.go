package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube/metricsauth"
)

// flags are those of run.
type flags struct {
	Options
	namespaces   []string
	leaderElect  bool
	leaderSpace  string
	metricsAddr  string
	secure       bool // metrics are encrypted, and for those who may read them
	healthAddr   string
	budget       int
	leaseSeconds int
	debug        bool
	webhooks     webhooks
	health       health
	candidate    *candidate
}

func runCommand(options Options) *cobra.Command {
	o := flags{Options: options}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Example: strings.ReplaceAll(`  # against the cluster of the current kubeconfig, without leader election
  NAME run --leader-elect=false

  # for two namespaces only
  NAME run --watch-namespaces=team-a,team-b`, "NAME", options.Name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.level()})))
			tuneMemory()
			if o.leaseSeconds < 3 {
				return fmt.Errorf("--leader-elect-lease-seconds=%d is too short: use 3 or more", o.leaseSeconds)
			}
			return o.run(cmd.Context())
		},
	}
	o.define(cmd)
	return cmd
}

// Run runs the operator on the cluster of the configuration until the context ends: without leader election, webhooks
// and ports of its own, for tests and for programs that have an operator inside. It watches the given namespaces, or all.
func Run(ctx context.Context, cfg *rest.Config, options Options, namespaces ...string) error {
	options, err := options.complete()
	if err != nil {
		return err
	}
	o := flags{Options: options, namespaces: namespaces, metricsAddr: "0", healthAddr: "0", leaseSeconds: 15}
	mgr, _, err := o.manager(o.unthrottled(cfg), nil)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *flags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.namespaces, "watch-namespaces", nil, "namespaces to watch; all if empty")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "let one of several replicas act; the others keep their caches warm")
	f.StringVar(&o.leaderSpace, "leader-elect-namespace", "", "namespace of the lease; the pod's own if empty")
	f.IntVar(&o.leaseSeconds, "leader-elect-lease-seconds", 15, "how long a silent leader keeps the lease (at least 3)")
	f.StringVar(&o.metricsAddr, "metrics-address", ":8443", "where to serve metrics; 0 for nowhere")
	f.BoolVar(&o.secure, "metrics-secure", true, "serve metrics by HTTPS, to bearer tokens of users who may get the path /metrics; false serves them by HTTP to everybody")
	f.StringVar(&o.healthAddr, "health-address", ":8081", "where to serve /healthz and /readyz; 0 for nowhere")
	f.IntVar(&o.budget, "disruption-budget", engine.DefaultBudget, "objects of the whole fleet that may be under a disruptive step at once")
	f.BoolVar(&o.debug, "debug", false, "log more")
	o.webhooks.define(f, o.Name)
}

func (o *flags) level() slog.Level {
	if o.debug {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// run runs one manager after the other until the context ends.
func (o *flags) run(ctx context.Context) error {
	o.webhooks.ending = ctx.Done()
	if err := o.health.listen(ctx, o.healthAddr); err != nil {
		return err
	}
	var err error
	if o.candidate, err = newCandidate(); err != nil {
		return err
	}
	for {
		err := o.live(ctx)
		if !errors.Is(err, errOutage) && !errors.Is(err, errResigned) {
			return err
		}
		ctrl.Log.Info("starting again in this process", "because", err.Error())
	}
}

// live runs the operator until the context ends, an outage of the API server has ended, or the leader resigns.
func (o *flags) live(ctx context.Context) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to run in: %w; set KUBECONFIG or run in a pod", err)
	}
	if err := awaitAPI(ctx, cfg); err != nil {
		return err
	}
	away := newOutage()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	loud := away.listen(o.unthrottled(cfg))
	term, err := o.term(loud, stop)
	if err != nil {
		return err
	}
	mgr, op, err := o.manager(loud, term)
	if err != nil {
		return err
	}
	defer o.health.during(o.webhooks.checks())()
	go func() { stop(away.over(ctx, cfg)) }()
	return serve(ctx, mgr, op, term.end())
}

// serve returns the cause of the context's end, after all steps have stopped. Then another leader may start, also in this
// process. It returns early if the lease expires before that, so that the process exits.
func serve(ctx context.Context, mgr manager.Manager, op *engine.Operator, over <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() {
		err := mgr.Start(ctx)
		op.Wait()
		ended <- err
	}()
	select {
	case <-over:
		return errOverrun
	case err := <-ended:
		if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	}
}

// term is the lease of the next manager, or nil without leader election.
func (o *flags) term(cfg *rest.Config, resign func(error)) (*lease, error) {
	if !o.leaderElect {
		return nil, nil
	}
	lock, err := o.lock(cfg, o.candidate.identity)
	if err != nil {
		return nil, err
	}
	return newLease(lock, o.candidate, o.leaseDuration(), resign), nil
}

// manager returns the operator with all its applications, not yet started. It acts during the term, or always if that
// is nil.
func (o *flags) manager(cfg *rest.Config, term *lease) (manager.Manager, *engine.Operator, error) {
	if err := o.webhooks.locate(); err != nil {
		return nil, nil, err
	}
	scheme, err := newScheme(o.APIs)
	if err != nil {
		return nil, nil, err
	}
	mgr, err := ctrl.NewManager(cfg, o.managerOptions(scheme, term))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot prepare the operator: %w", err)
	}
	op, err := o.outfit(mgr, term)
	return mgr, op, err
}

// outfit adds the webhooks, the engine and the applications to the manager.
func (o *flags) outfit(mgr manager.Manager, term *lease) (*engine.Operator, error) {
	if err := o.webhooks.keep(mgr, o.Options, len(o.namespaces) > 0); err != nil {
		return nil, err
	}
	options := engine.Options{
		Name: o.Name, Namespaces: o.namespaces, Budget: o.budget, Version: o.Version, Webhooks: o.webhooks.on,
		PolicyStatus: o.PolicyStatus,
	}
	if term != nil {
		options.MayAct = term.held
	}
	op, err := engine.New(mgr, options)
	if err != nil {
		return nil, err
	}
	return op, o.Register(op)
}

// unthrottled disables the client's rate limit, because the API server limits requests by its
// load (API Priority and Fairness). It disables compression, because each watch would keep a
// decompressor of 40 KiB.
func (o *flags) unthrottled(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.DisableCompression = true
	cfg.UserAgent = o.Name + "/" + o.Version
	return cfg
}

// terse encodes Kubernetes' own objects as protobuf. Renewing the lease in JSON would be a
// quarter of the CPU of an idle operator.
func terse(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return cfg
}

func (o *flags) leaseDuration() time.Duration { return time.Duration(o.leaseSeconds) * time.Second }

func (o *flags) managerOptions(scheme *runtime.Scheme, term *lease) manager.Options {
	duration := o.leaseDuration()
	renew, retry := duration*2/3, duration/5
	options := manager.Options{
		Scheme:                        scheme,
		LeaderElection:                term != nil,
		LeaderElectionID:              o.Lease,
		LeaderElectionReleaseOnCancel: true, // what acts has stopped by then, or Start returns an error and the process ends
		LeaseDuration:                 &duration,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		Metrics:                       o.metrics(),
		WebhookServer:                 o.webhooks.server(),
	}
	if term != nil {
		options.LeaderElectionResourceLockInterface = term
	}
	return options
}

// metrics are served with the webhooks' certificate. An operator without webhooks uses a
// self-signed certificate, which only encrypts.
func (o *flags) metrics() metricsserver.Options {
	m := metricsserver.Options{BindAddress: o.metricsAddr}
	if !o.secure {
		return m
	}
	m.SecureServing, m.FilterProvider = true, metricsauth.Provider(clock.RealClock{})
	if o.webhooks.on {
		m.TLSOpts = []func(*tls.Config){o.webhooks.configure}
	}
	return m
}

func newScheme(apis []func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append(slices.Clone(apis), clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register an API: %w", err)
		}
	}
	return scheme, nil
}
