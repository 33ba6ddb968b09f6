package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// Object identifies an object that policies select.
type Object struct {
	Group, Kind, Namespace, Name string
	Labels                       map[string]string
	// NamespaceLabels are the labels of the namespace; nil if they are not known. Then a policy
	// selects the object as if they matched, and only what holds steps counts of it.
	NamespaceLabels map[string]string
}

// String names the object to users, e.g. "EtcdCluster team-a/orders".
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Policy is a parsed OperationPolicy.
type Policy struct {
	// Name is the name of the OperationPolicy.
	Name string
	// Faults describe the invalid fields.
	Faults []string

	spec       v1alpha1.OperationPolicySpec
	selector   labels.Selector
	namespaces labels.Selector
	nodes      labels.Selector
	windows    windows
	waves      []labels.Selector
}

// New parses a policy. Faults lists the invalid fields: an invalid window never opens, and
// an invalid selector selects nothing.
func New(p *v1alpha1.OperationPolicy) *Policy {
	read := &Policy{Name: p.Name, spec: *p.Spec.DeepCopy()}
	read.windows, read.Faults = newWindows(p.Spec.Windows)
	read.selector = read.labels("spec.selector.labelSelector", p.Spec.Selector.LabelSelector)
	read.namespaces = read.labels("spec.selector.namespaceSelector", p.Spec.Selector.NamespaceSelector)
	if m := p.Spec.NodeMaintenance; m != nil {
		read.nodes = read.labels("spec.nodeMaintenance.selector", m.Selector)
	}
	if p.Spec.Canary != nil {
		for i := range p.Spec.Canary.Waves {
			wave := &p.Spec.Canary.Waves[i]
			read.waves = append(read.waves, read.labels(fmt.Sprintf("spec.canary.waves[%d].labelSelector", i), &wave.LabelSelector))
		}
	}
	return read
}

func (p *Policy) labels(field string, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	read, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		p.Faults = append(p.Faults, fmt.Sprintf("%s selects nothing: %s", field, err))
		return labels.Nothing()
	}
	return read
}

// Selects reports whether the policy selects the object.
func (p *Policy) Selects(o Object) bool {
	s := p.spec.Selector
	kind := func(k string) bool { return k == o.Kind || k == o.Kind+"."+o.Group }
	return (len(s.Kinds) == 0 || slices.ContainsFunc(s.Kinds, kind)) &&
		(len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, o.Namespace)) &&
		p.selector.Matches(labels.Set(o.Labels)) &&
		(o.NamespaceLabels == nil || p.namespaces.Matches(labels.Set(o.NamespaceLabels)))
}

// holdingOnly returns the policy without the fields by which the operator acts in another way than
// to hold a step, such as a rollback.
func (p *Policy) holdingOnly() *Policy {
	only := *p
	only.spec.NodeMaintenance = nil
	if only.spec.DriftPolicy == v1alpha1.DriftPolicyReport {
		only.spec.DriftPolicy = ""
	}
	if only.spec.OnFailure == v1alpha1.FailurePolicyRollback {
		only.spec.OnFailure = ""
	}
	return &only
}

// SelectsByNamespace reports whether the policy selects objects by the labels of their namespaces.
func (p *Policy) SelectsByNamespace() bool { return p.spec.Selector.NamespaceSelector != nil }

// Window returns when the next window opens, or until when one is open, and the time at
// which this text changes. Without windows it returns "".
func (p *Policy) Window(now time.Time) (said string, change time.Time) {
	if len(p.spec.Windows) == 0 {
		return "", time.Time{}
	}
	switch s := p.windows.at(now); {
	case s.open && s.closes.IsZero():
		return "open", time.Time{}
	case s.open:
		return "open until " + utc(s.closes), s.closes
	case s.opens.IsZero():
		return "never", time.Time{}
	default:
		return utc(s.opens), s.opens
	}
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// moment formats a time for users, in the zone of the window.
func moment(t time.Time, zone *time.Location) string {
	if zone == nil || zone == time.UTC {
		return t.UTC().Format("Mon 2006-01-02 15:04 MST")
	}
	return t.In(zone).Format("Mon 2006-01-02 15:04 MST") + " (" + zone.String() + ")"
}

// Set is several policies, sorted by name.
type Set []*Policy

// NewSet parses all policies. A policy that is being deleted counts until its deletion ends.
func NewSet(all []v1alpha1.OperationPolicy) Set {
	var s Set
	for i := range all {
		s = append(s, New(&all[i]))
	}
	slices.SortFunc(s, func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// Selecting returns the policies that select the object. Of a policy that may not select it, because the
// labels of its namespace are not known, only what holds steps counts: a freeze, windows, approvals, waves
// and budgets. A rollback would write to an object that the policy may not be about.
func (s Set) Selecting(o Object) Set {
	var about Set
	for _, p := range s {
		switch {
		case !p.Selects(o):
		case o.NamespaceLabels == nil && p.SelectsByNamespace():
			about = append(about, p.holdingOnly())
		default:
			about = append(about, p)
		}
	}
	return about
}

// Names returns the names of all policies, sorted.
func (s Set) Names() []string {
	var names []string
	for _, p := range s {
		names = append(names, p.Name)
	}
	return names
}

// where returns the names of the policies for which the condition is true.
func (s Set) where(is func(*Policy) bool) []string {
	var names []string
	for _, p := range s {
		if is(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Said formats names of policies for a message: the policy "a", the policies "a" and "b".
func Said(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	if len(quoted) == 1 {
		return "the policy " + quoted[0]
	}
	last := len(quoted) - 1
	return "the policies " + strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}
