package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"

	"github.com/governor-dev/governor/lifecycle"
)

// status are the flags of the command.
type status struct {
	*session
	output

	everywhere, watch bool
	selector          string
}

func statusCommand(s *session) *cobra.Command {
	st := &status{session: s}
	cmd := &cobra.Command{
		Use:   "status [TYPE [NAME] | TYPE/NAME]",
		Short: "Show the status of all objects, or of one object with its members",
		Long: `Show the status of all objects that Governor runs, of all objects of a type, or of one
object as a tree: its members, their pods and volumes, with health, version and node, the
change that is under way, and the gate or policy that holds a step.

-w watches and shows every change: in place on a terminal, elsewhere as one line for each
change.`,
		Example: `  # all objects that Governor runs in this namespace, and in all namespaces
  kubectl governor status
  kubectl governor status -A

  # all etcd clusters, with versions and members
  kubectl governor status etcdclusters -o wide

  # all objects with a label
  kubectl governor status -l team=shop

  # one cluster, its members, pods and volumes
  kubectl governor status etcdcluster/my-cluster

  # watch an upgrade
  kubectl governor status etcdcluster my-cluster -w`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return st.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&st.everywhere, "all-namespaces", "A", false, "list objects of all namespaces")
	f.StringVarP(&st.selector, "selector", "l", "", "list objects with these labels, such as team=shop")
	f.BoolVarP(&st.watch, "watch", "w", false, "watch, and show every change")
	st.add(cmd, formatWide, formatName)
	return cmd
}

func (s *status) run(ctx context.Context, args []string) error {
	if s.watch && !s.people() {
		return fmt.Errorf("--watch does not support -o %s: use text or wide", s.format)
	}
	switch {
	case len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/"):
		if s.everywhere || s.selector != "" {
			return errors.New("--all-namespaces and --selector cannot be used with one object")
		}
		return s.one(ctx, args)
	case len(args) == 1:
		return s.list(ctx, args[0])
	}
	return s.list(ctx, "")
}

// list shows all objects of the type, or of all governed kinds.
func (s *status) list(ctx context.Context, only string) error {
	if _, err := labels.Parse(s.selector); err != nil {
		return fmt.Errorf("--selector %s cannot be read: %w", s.selector, err)
	}
	kinds, err := s.chosen(only)
	if err != nil {
		return err
	}
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if s.everywhere {
		namespace = metav1.NamespaceAll
	}
	client, err := s.dynamic()
	if err != nil {
		return err
	}
	var sources []source
	for _, k := range kinds {
		sources = append(sources, source{kind: k.GroupVersionResource, namespace: namespace, labels: s.selector})
	}
	found, faults := fetch(ctx, client, sources)
	if err := missing(ctx, client, namespace, found); err != nil {
		return err
	}
	s.warnOfAbsence(ctx, client, slices.Concat(found...)...)
	fault := errors.Join(faults...)
	if s.watch && fault == nil {
		on := &paper{session: s.session, replaces: s.screen != nil}
		return s.follow(ctx, client, sources, func(c catch) []line { return s.rows(s.states(c)) }, on)
	}
	all := s.states(found)
	return errors.Join(s.write(s.session, all, func() { s.print(all) }), fault)
}

// missing returns an error if nothing was found because the namespace does not exist. It
// returns nil if the user may not read namespaces.
func missing(ctx context.Context, client dynamic.Interface, namespace string, found catch) error {
	if namespace == metav1.NamespaceAll || slices.ContainsFunc(found, func(some []*unstructured.Unstructured) bool { return len(some) > 0 }) {
		return nil
	}
	_, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %q", namespace)
	}
	return nil
}

// chosen returns the kinds to list.
func (s *status) chosen(only string) ([]kind, error) {
	kinds, err := s.governed(true)
	if err != nil {
		return nil, err
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("no kind of this cluster is run by Governor: is it installed? (kubectl api-resources --categories=%s)", category)
	}
	if only == "" {
		return kinds, nil
	}
	kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !k.called(only) })
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%q is not a type that Governor runs; %s", only, s.kindsHere())
	}
	return kinds, nil
}

// state is one object in the list.
type state struct {
	Namespace string `json:"namespace"`
	// Object is kind/name.
	Object string `json:"object"`
	// Ready is True, False, Unknown or Paused.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is the last change of Ready.
	Since *metav1.Time `json:"since,omitempty"`
	// Held reports that a gate or a policy holds the next step; Message names it.
	Held bool `json:"held,omitempty"`
	// Reconciling reports that a change is under way, and Stalled that a person must act.
	Reconciling bool `json:"reconciling,omitempty"`
	Stalled     bool `json:"stalled,omitempty"`
	// Drift is the drift that Governor does not repair, and Back the failed change that was
	// rolled back.
	Drift string `json:"drift,omitempty"`
	Back  string `json:"rolledBack,omitempty"`
	// Blocked is the object that cannot be applied while repairs continue, Due are the
	// certificates that a pause keeps from being renewed, and Deletion is the policy that
	// holds the deletion.
	Blocked  string `json:"resourcesBlocked,omitempty"`
	Due      string `json:"certificatesDue,omitempty"`
	Deletion string `json:"deletionHeld,omitempty"`
	// Version is the running version, and Count the ready members of all, if the kind
	// reports them.
	Version string `json:"version,omitempty"`
	Count   string `json:"membersReady,omitempty"`

	// heldSince is when a policy began to hold a change of a ready object; nil if none does.
	heldSince *metav1.Time
	age       time.Duration
	full      string
}

func (s *status) states(found catch) []state {
	all := []state{}
	for _, some := range found {
		for _, obj := range some {
			all = append(all, s.state(obj))
		}
	}
	return all
}

func (s *status) state(obj *unstructured.Unstructured) state {
	kind := strings.ToLower(obj.GetKind())
	st := state{
		Namespace: obj.GetNamespace(), Object: kind + "/" + obj.GetName(),
		Ready: string(metav1.ConditionUnknown), Reason: "NotSeen", Message: "Governor has not observed it yet.",
		Version: versionOf(obj), Count: membersOf(obj),
		age:  s.now().Sub(obj.GetCreationTimestamp().Time),
		full: kind + "." + obj.GroupVersionKind().Group + "/" + obj.GetName(),
	}
	all := conditions(obj)
	if c := apimeta.FindStatusCondition(all, lifecycle.ConditionReady); c != nil {
		st.Ready, st.Reason, st.Message, st.Since = string(c.Status), c.Reason, c.Message, &c.LastTransitionTime
		st.Held = strings.HasPrefix(c.Reason, "HeldBy")
	}
	if c := apimeta.FindStatusCondition(all, lifecycle.ConditionChangeHeld); c != nil && c.Status == metav1.ConditionTrue {
		st.heldSince = &c.LastTransitionTime
	}
	st.Reconciling = apimeta.IsStatusConditionTrue(all, lifecycle.ConditionReconciling)
	st.Stalled = apimeta.IsStatusConditionTrue(all, lifecycle.ConditionStalled)
	st.Drift, st.Back = message(all, lifecycle.ConditionDrifted), message(all, lifecycle.ConditionRolledBack)
	st.Blocked, st.Due = message(all, lifecycle.ConditionResourcesBlocked), message(all, lifecycle.ConditionCertificatesDue)
	st.Deletion = message(all, lifecycle.ConditionDeletionHeld)
	if isPaused(all) {
		st.Ready = lifecycle.ConditionPaused
	}
	return st
}

// message returns the message of a condition if it is true.
func message(all []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(all, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// versionOf returns the running version, by the conventions for status fields.
func versionOf(obj *unstructured.Unstructured) string {
	for _, path := range [][]string{{"status", "version"}, {"status", "version", "current"}, {"status", "image"}, {"spec", "version"}} {
		if v, ok, err := unstructured.NestedString(obj.Object, path...); ok && err == nil && v != "" {
			return tag(v)
		}
	}
	return ""
}

// tag is the version in the name of an image.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	return image[strings.LastIndexAny(image, ":/")+1:]
}

func membersOf(obj *unstructured.Unstructured) string {
	ready, ok, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas")
	if !ok {
		ready, ok, _ = unstructured.NestedInt64(obj.Object, "status", "availableReplicas")
	}
	all, known, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")
	if !ok && !known {
		return ""
	}
	return fmt.Sprintf("%d/%d", ready, all)
}

// remarks are the message, and what else a user has to act on.
func (st state) remarks() string {
	all := slices.DeleteFunc([]string{st.Message, st.Blocked, st.Due, st.Deletion}, func(m string) bool { return m == "" })
	return strings.Join(slices.Compact(all), " ")
}

// mood is the colour of a state.
func (st state) mood() tone {
	switch {
	case st.Stalled:
		return bad
	case st.Ready == string(metav1.ConditionTrue):
		return good
	}
	return fair
}

func (s *status) print(all []state) {
	switch {
	case s.format == formatName:
		for _, st := range all {
			s.say("%s", st.full)
		}
	case len(all) == 0:
		s.say("Governor runs no objects here.")
	default:
		for _, l := range s.rows(all) {
			s.say("%s", l.text)
		}
	}
}

// rows formats the list. Lines that are not redrawn in place have no age, because it would
// change every line, and no aligned columns.
func (s *status) rows(all []state) []line {
	ages := s.screen != nil || !s.watch
	table := [][]cell{s.row(ages, cells("NAMESPACE", "OBJECT", "READY", "VERSION", "MEMBERS", "REASON", "AGE", "MESSAGE"))}
	keys := []string{""}
	for _, st := range all {
		row := cells(st.Namespace, st.Object, st.Ready, cmp.Or(st.Version, "-"), cmp.Or(st.Count, "-"), st.Reason, duration.HumanDuration(st.age), st.remarks())
		row[2].tone = st.mood()
		table = append(table, s.row(ages, row))
		keys = append(keys, st.Namespace+"/"+st.Object)
	}
	lines := make([]line, len(table))
	var texts []string
	if ages {
		texts = s.table(table)
	}
	for i := range table {
		if lines[i].key = keys[i]; ages {
			lines[i].text = texts[i]
		} else {
			lines[i].text = s.table(table[i : i+1])[0]
		}
	}
	return lines
}

// row drops the columns that the flags do not request.
func (s *status) row(ages bool, full []cell) []cell {
	const place, version, members, age = 0, 3, 4, 6
	var row []cell
	for i, c := range full {
		hidden := i == place && !s.everywhere || (i == version || i == members) && !s.wide() || i == age && !ages
		if !hidden {
			row = append(row, c)
		}
	}
	return row
}
