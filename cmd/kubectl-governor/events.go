package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// news are the flags of the command.
type news struct {
	*session
	output

	watch, all bool
}

func eventsCommand(s *session) *cobra.Command {
	n := &news{session: s}
	cmd := &cobra.Command{
		Use:   "events TYPE/NAME",
		Short: "List the recent events of an object",
		Long: `List the events of an object, oldest first: a summary of Governor's actions and decisions.
--members adds the events of its pods, volumes and workloads, which Kubernetes reports.
Kubernetes deletes events after an hour; kubectl governor history keeps the steps.`,
		Example: `  kubectl governor events etcdcluster/my-cluster

  # watch, with the events of the scheduler and the kubelets
  kubectl governor events etcdcluster my-cluster --members -w`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return n.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&n.watch, "watch", "w", false, "watch, and show every new event")
	f.BoolVar(&n.all, "members", false, "add the events of its pods, volumes and workloads")
	n.add(cmd, formatWide)
	return cmd
}

func (n *news) run(ctx context.Context, args []string) error {
	if n.watch && !n.people() {
		return errors.New("--watch does not support -o " + n.format + ": use text or wide")
	}
	t, err := n.subject(args)
	if err != nil {
		return err
	}
	sources := []source{{
		kind: eventsv1.SchemeGroupVersion.WithResource("events"), namespace: t.GetNamespace(),
		fields: fields.OneTermEqualSelector("regarding.uid", string(t.GetUID())).String(),
	}}
	if n.all {
		sources[0].fields = ""
		sources = append(sources, t.belongings()...)
	}
	found, faults := fetch(ctx, t.all, sources)
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if n.watch {
		return n.follow(ctx, t.all, sources, func(c catch) []line { return n.lines(n.of(t, c)) }, &paper{session: n.session})
	}
	all := n.of(t, found)
	return n.write(n.session, all, func() { n.print(t, all) })
}

// of returns the events of the object, oldest first, with --members also those of its
// members.
func (n *news) of(t *target, found catch) []eventsv1.Event {
	all := as[eventsv1.Event](found[0])
	if n.all {
		about := map[string]bool{string(t.GetUID()): true}
		for _, some := range own(t.Unstructured, found[1:]) {
			for _, u := range some {
				about[string(u.GetUID())] = true
			}
		}
		all = slices.DeleteFunc(all, func(e eventsv1.Event) bool { return !about[string(e.Regarding.UID)] })
	}
	slices.SortStableFunc(all, func(a, b eventsv1.Event) int { return cmp.Compare(lastSeen(a).UnixNano(), lastSeen(b).UnixNano()) })
	return all
}

func (n *news) print(t *target, all []eventsv1.Event) {
	if len(all) == 0 {
		n.say("There are no recent events of %s; see kubectl governor history %s.", t, t)
		return
	}
	for _, l := range n.lines(all) {
		n.say("%s", l.text)
	}
}

// lines formats the events; a repeated event has a line for each observed time.
func (n *news) lines(all []eventsv1.Event) []line {
	lines := make([]line, len(all))
	for i, e := range all {
		color := plain
		if e.Type == corev1.EventTypeWarning {
			color = bad
		}
		parts := []string{moment(lastSeen(e)), n.paint(color, e.Type), e.Reason}
		if n.all {
			parts = append(parts, strings.ToLower(e.Regarding.Kind)+"/"+e.Regarding.Name)
		}
		if n.wide() {
			parts = append(parts, cmp.Or(e.ReportingController, e.DeprecatedSource.Component), e.Action)
		}
		lines[i] = line{key: string(e.UID), text: strings.Join(append(parts, e.Note), "  "), quiet: true}
	}
	return lines
}

// lastSeen returns the last time of an event, also in the older format.
func lastSeen(e eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.DeprecatedLastTimestamp.IsZero():
		return e.DeprecatedLastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
