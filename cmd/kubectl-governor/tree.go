package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// tree is one object with its members and volumes.
type tree struct {
	state
	// Tree has the members, and the volumes that no pod uses.
	belongings
	// Last summarizes the newest entry of the history.
	Last string `json:"lastStep,omitempty"`
}

// one shows the object as a tree.
func (s *status) one(ctx context.Context, args []string) error {
	t, err := s.subject(args)
	if err != nil {
		return err
	}
	sources := append([]source{
		named(t.mapping.Resource, t.GetNamespace(), t.GetName()),
		named(corev1.SchemeGroupVersion.WithResource("configmaps"), t.GetNamespace(), history.Name(t.GetKind(), t.GetName())),
	}, t.belongings()...)
	found, faults := fetch(ctx, t.all, sources)
	s.warnOfAbsence(ctx, t.all, found[0]...)
	faults[1] = nil // the history is optional
	fault := errors.Join(faults...)
	if s.watch && fault == nil {
		return s.follow(ctx, t.all, sources, s.branches, &paper{session: s.session, replaces: s.screen != nil})
	}
	if len(found[0]) == 0 {
		return errors.Join(fmt.Errorf("%s was deleted", t), fault)
	}
	of := s.tree(found)
	return errors.Join(s.write(s.session, of, func() { s.printTree(of) }), fault)
}

func (s *status) tree(found catch) tree {
	obj := found[0][0]
	return tree{state: s.state(obj), belongings: grow(obj, found[2:]), Last: lastOf(found[1])}
}

func (s *status) printTree(of tree) {
	if s.format == formatName {
		s.say("%s", of.full)
		return
	}
	for _, l := range s.draw(of) {
		s.say("%s%s", l.lead, l.text)
	}
}

// branches formats the watched tree.
func (s *status) branches(found catch) []line {
	if len(found[0]) == 0 {
		return []line{{key: "", text: "It was deleted."}}
	}
	return s.draw(s.tree(found))
}

// lastOf summarizes the newest entry of the history.
func lastOf(books []*unstructured.Unstructured) string {
	for _, cm := range as[corev1.ConfigMap](books) {
		book, err := history.Decode(cm.Data[history.Key])
		if last, ok := book.Last(); ok && err == nil {
			return fmt.Sprintf("%s, %s at %s", took(last), last.Result, moment(last.At))
		}
	}
	return ""
}

// draw formats the tree as lines.
func (s *status) draw(of tree) []line {
	lines := []line{{key: of.Object, text: fmt.Sprintf("%s in %s: %s", of.Object, of.Namespace, s.verdict(of.state))}}
	if now := s.underWay(of.state); now != "" {
		lines = append(lines, line{key: "since", text: now, quiet: true})
	}
	for _, fact := range [][2]string{
		{"drifted", of.Drift}, {"rolled back", of.Back}, {"cannot be provided", of.Blocked}, {"certificates are due", of.Due}, {"deletion held", of.Deletion},
	} {
		if fact[1] != "" && fact[1] != of.Message {
			lines = append(lines, line{key: fact[0], text: s.paint(fair, fact[0]) + ": " + fact[1]})
		}
	}
	if of.Last != "" {
		lines = append(lines, line{key: "last step", text: "last step: " + of.Last})
	}
	for i, m := range of.Members {
		last := i == len(of.Members)-1 && len(of.UnusedVolumes) == 0
		lines = append(lines, s.member(m, last)...)
	}
	for i, v := range of.UnusedVolumes {
		lines = append(lines, line{
			key: "volume " + v.Name, lead: branch(i == len(of.UnusedVolumes)-1), text: s.volume(v) + "  (no pod has it)",
		})
	}
	return lines
}

func (s *status) member(m member, last bool) []line {
	lines := []line{{key: m.Name, lead: branch(last), text: s.words(m)}}
	for i, p := range m.Pods {
		lines = append(lines, line{key: "pod " + p.Name, lead: trunk(last) + branch(i == len(m.Pods)-1), text: s.pod(p)})
		for j, v := range p.Volumes {
			ahead := trunk(last) + trunk(i == len(m.Pods)-1) + branch(j == len(p.Volumes)-1)
			lines = append(lines, line{key: "volume " + v.Name, lead: ahead, text: s.volume(v)})
		}
	}
	return lines
}

func branch(last bool) string {
	if last {
		return "└─ "
	}
	return "├─ "
}

func trunk(last bool) string {
	if last {
		return "   "
	}
	return "│  "
}

// words formats the member with the fields of the object's status.
func (s *status) words(m member) string {
	words := []string{m.Name}
	for _, word := range []string{m.Role, s.paint(healthy(m.Health), m.Health), m.Version} {
		if word != "" {
			words = append(words, word)
		}
	}
	if len(m.Pods) == 0 {
		words = append(words, s.paint(fair, "has no pod"))
	}
	if m.Problem != "" {
		words = append(words, s.paint(bad, m.Problem))
	}
	return strings.Join(words, "  ")
}

func (s *status) pod(p pod) string {
	said := fmt.Sprintf("pod %s  %s  %s  on %s", p.Name, s.paint(healthy(p.Health), p.Health), p.Version, cmp.Or(p.Node, "no node"))
	if p.Restarts > 0 {
		said += fmt.Sprintf("  restarted %dx", p.Restarts)
	}
	return said
}

func (s *status) volume(v volume) string {
	return strings.TrimRight(fmt.Sprintf("volume %s  %s  %s", v.Name, s.paint(healthy(v.Phase), v.Phase), v.Size), " ")
}

// healthy returns the color of a health value.
func healthy(word string) tone {
	switch word {
	case "Ready", "Healthy", string(corev1.ClaimBound):
		return good
	case "":
		return plain
	}
	return fair
}

func (s *status) verdict(st state) string {
	switch st.Ready {
	case string(metav1.ConditionTrue):
		if st.Held {
			return fmt.Sprintf("%s, %s. %s", s.paint(good, "ready"), st.Reason, st.Message)
		}
		return s.paint(good, "ready") + ". " + st.Message
	case lifecycle.ConditionPaused:
		return s.paint(fair, "paused") + ". " + st.Message
	}
	return fmt.Sprintf("%s, %s. %s", s.paint(st.mood(), "not ready"), st.Reason, st.Message)
}

// underWay formats whether a change is under way, is held, or needs a person, and since when.
func (s *status) underWay(st state) string {
	var what string
	switch {
	case st.Ready == lifecycle.ConditionPaused || st.Since == nil:
		return ""
	case st.heldSince != nil:
		return fmt.Sprintf("%s since %s", s.paint(fair, "held"), moment(st.heldSince.Time))
	case st.Held:
		what = s.paint(fair, "held")
	case st.Stalled:
		what = s.paint(bad, "needs a person to act")
	case st.Reconciling:
		what = "under way"
	default:
		return ""
	}
	return fmt.Sprintf("%s; not ready since %s", what, moment(st.Since.Time))
}
