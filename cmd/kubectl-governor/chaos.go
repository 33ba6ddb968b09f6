package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/kube/chaos/subject"
	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// monkey are the flags of the command.
type monkey struct {
	*session
	output

	limits           experiment.Limits
	selector, reason string
	only             []string
	seed             uint64
	list, dryRun     bool
}

func chaosCommand(s *session) *cobra.Command {
	m := &monkey{session: s}
	cmd := &cobra.Command{
		Use:   "chaos TYPE/NAME... | TYPE -l SELECTOR",
		Short: "Disturb instances within limits, and report how they heal",
		Long: fmt.Sprintf(`Disturb instances within limits, and report how they heal. The command deletes, evicts and
isolates pods, and deletes and edits configuration that the operator restores. It deletes
no volume, and no pod that keeps data without a volume.

A manipulation begins only while its instance is Ready, no change is under way, and no
policy holds it. The experiment ends at the first violated promise: an instance does not
heal in time, or has fewer pods than its PodDisruptionBudget requires. Lasting
manipulations, such as a NetworkPolicy, are always reverted, also after Ctrl-C.

The namespace must permit it: kubectl label namespace NAME %s=%s`, experiment.OptInLabel, experiment.OptInValue),
		Example: `  # list the manipulations, and plan an experiment
  kubectl governor chaos --list
  kubectl governor chaos etcdcluster/my-cluster --budget 6 --for 30m --seed 42 --dry-run

  # six manipulations, none after 30 minutes
  kubectl governor chaos etcdcluster/my-cluster --budget 6 --for 30m --reason "game day"

  # only evictions, of two instances at once, with a report for a pipeline
  kubectl governor chaos etcdclusters -l tier=test --only pod-evict --budget 20 --at-once 2 --for 1h -o json`,
		ValidArgsFunction: s.complete,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return m.run(cmd, args) }
	m.addFlags(cmd)
	return cmd
}

func (m *monkey) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&m.limits.Budget, "budget", 0, "maximum number of manipulations (required)")
	f.DurationVar(&m.limits.For.Duration, "for", 0, "how long manipulations may begin, such as 30m (required)")
	f.IntVar(&m.limits.AtOnce, "at-once", 1, "maximum number of instances under a manipulation at the same time")
	f.DurationVar(&m.limits.Pause.Duration, "pause", 10*time.Second, "time between the end of a manipulation and the next")
	f.DurationVar(&m.limits.HealWithin.Duration, "heal-within", 5*time.Minute, "maximum time for an instance to heal")
	f.DurationVar(&m.limits.Lasting.Duration, "lasting", 20*time.Second, "duration of a manipulation that must be reverted, such as pod-isolate")
	f.StringVarP(&m.selector, "selector", "l", "", "select the instances of a type by their labels")
	f.StringSliceVar(&m.only, "only", nil, "choose only from these manipulations, see --list")
	f.Uint64Var(&m.seed, "seed", 0, "repeat the choices of another experiment; random if not set")
	f.StringVar(&m.reason, "reason", "", "the reason, for the events")
	f.BoolVar(&m.list, "list", false, "list the manipulations")
	f.BoolVar(&m.dryRun, "dry-run", false, "print the planned manipulations, and do nothing")
	names := make([]string, 0, len(experiment.Safe()))
	for _, one := range experiment.Safe() {
		names = append(names, one.Name+"\t"+one.Sentence)
	}
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	m.add(cmd)
}

func (m *monkey) run(cmd *cobra.Command, args []string) error {
	all, err := chosenFrom(experiment.Safe(), m.only)
	if err != nil {
		return err
	}
	if m.list {
		return m.write(m.session, listed(all), func() { m.printList(all) })
	}
	if err := m.check(cmd); err != nil {
		return err
	}
	if !cmd.Flags().Changed("seed") {
		m.seed = rand.Uint64N(1_000_000) //nolint:gosec // a seed that users can type, not a secret
	}
	e, err := m.experiment(cmd.Context(), args, all)
	if err != nil {
		return err
	}
	if m.dryRun {
		return m.plan(cmd.Context(), e)
	}
	r := e.Run(cmd.Context())
	if err := m.write(m.session, r, func() { m.print(r) }); err != nil || r.Good() {
		return err
	}
	return errors.New(strings.ToLower(string(r.Outcome)) + ": " + r.Message)
}

// check refuses an experiment without limits.
func (m *monkey) check(cmd *cobra.Command) error {
	for _, flag := range []string{"budget", "for"} {
		if !cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is not set: an experiment needs --budget, how many manipulations are done, and --for, how long one may begin", flag)
		}
	}
	return m.limits.Validate()
}

// chosenFrom returns the manipulations with the names, or all if there are no names.
func chosenFrom(all chaos.Catalogue, names []string) (chaos.Catalogue, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen chaos.Catalogue
	for _, name := range names {
		one, ok := all.Named(name)
		if !ok {
			known := make([]string, len(all))
			for i, is := range all {
				known[i] = is.Name
			}
			return nil, fmt.Errorf("--only %s is not known, or not safe: use %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, one)
	}
	return chosen, nil
}

// experiment builds the experiment of the flags, with instances that permit it.
func (m *monkey) experiment(ctx context.Context, args []string, all chaos.Catalogue) (*experiment.Experiment, error) {
	targets, err := m.targets(args)
	if err != nil {
		return nil, err
	}
	shared, err := m.shared(ctx, targets[0])
	if err != nil {
		return nil, err
	}
	e := &experiment.Experiment{Catalogue: all, Limits: m.limits, Seed: m.seed, Now: m.now, Progress: m.progress}
	for _, t := range targets {
		instance, err := m.permitted(ctx, shared, t)
		if err != nil {
			return nil, err
		}
		e.Instances = append(e.Instances, instance)
	}
	return e, nil
}

// targets returns the named or selected objects, all of which Governor runs.
func (m *monkey) targets(args []string) ([]*target, error) {
	if len(args) == 0 {
		return nil, errors.New("no instance is named: name one, as in etcdcluster/NAME, or a type with -l SELECTOR")
	}
	infos, err := m.builder().LabelSelectorParam(m.selector).ResourceTypeOrNameArgs(false, args...).Latest().Do().Infos()
	if err != nil {
		return nil, m.withKinds(err)
	}
	if len(infos) == 0 {
		return nil, fmt.Errorf("-l %s selects no object of %s", m.selector, strings.Join(args, " "))
	}
	var all []*target
	for _, info := range infos {
		t, err := m.target(info)
		if err != nil {
			return nil, err
		}
		if err := m.mustRun(t); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(other *target) bool { return other.GetUID() == t.GetUID() }) {
			all = append(all, t)
		}
	}
	return all, nil
}

func (m *monkey) shared(ctx context.Context, t *target) (*subject.Experiment, error) {
	config, err := m.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := m.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	user, err := t.whoAmI(ctx)
	return &subject.Experiment{
		Client: c, User: user, Reason: m.reason, Manager: dryRun.FieldManager, Seed: m.seed, Budget: m.limits.Budget, Now: m.now,
		ID: string(uuid.NewUUID()), Longest: m.limits.Lasting.Duration + m.limits.HealWithin.Duration,
	}, err
}

// permitted returns the instance, or an error if its namespace does not permit experiments.
func (m *monkey) permitted(ctx context.Context, shared *subject.Experiment, t *target) (*subject.Subject, error) {
	instance, err := shared.Of(ctx, t.Unstructured)
	if err != nil {
		return nil, err
	}
	state, err := instance.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !state.OptedIn {
		return nil, fmt.Errorf("the namespace %s does not permit experiments: its label %s must be %s: kubectl label namespace %s %s=%s",
			t.GetNamespace(), experiment.OptInLabel, experiment.OptInValue, t.GetNamespace(), experiment.OptInLabel, experiment.OptInValue)
	}
	return instance, nil
}

// progress prints a line to standard error, unless -o is for programs.
func (m *monkey) progress(what string) {
	if m.people() {
		_, _ = fmt.Fprintf(m.ErrOut, "%s  %s\n", m.now().UTC().Format(time.TimeOnly), what)
	}
}
