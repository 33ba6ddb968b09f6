package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
)

var (
	// tuesday is outside of the window of Saturday nights.
	tuesday  = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	saturday = time.Date(2026, 11, 28, 2, 30, 0, 0, time.UTC)
	restart  = lifecycle.Step{Name: "Restart", Target: "a-1", Class: lifecycle.ClassDisruptive}
	mend     = lifecycle.Step{Name: "Replace", Target: "a-1", Class: lifecycle.ClassDestructive, Intent: lifecycle.IntentRepair}
	add      = lifecycle.Step{Name: "Add", Target: "a-4", Class: lifecycle.ClassRoutine, Cause: lifecycle.CauseSpecChange}
	finish   = lifecycle.Step{Name: "Promote", Target: "a-4", Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentRepair, Cause: lifecycle.CauseSpecChange}
	adopt    = lifecycle.Step{Name: "Adopt", Target: "a-4", Class: lifecycle.ClassRoutine, Cause: lifecycle.CauseDrift}
	orders   = policy.Object{Group: "g", Kind: "Ring", Namespace: "team", Name: "orders", Labels: map[string]string{"env": "prod"},
		NamespaceLabels: map[string]string{"stage": "live"}}
)

func made(name string, edit func(*v1alpha1.OperationPolicySpec)) v1alpha1.OperationPolicy {
	p := v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	edit(&p.Spec)
	return p
}

func nights(s *v1alpha1.OperationPolicySpec) {
	s.Windows = []v1alpha1.Window{{Schedule: "0 2 * * 6", TimeZone: "Europe/Zurich", Duration: metav1.Duration{Duration: 3 * time.Hour}}}
}

func frozen(until *metav1.Time) func(*v1alpha1.OperationPolicySpec) {
	return func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale", Until: until} }
}

func held(p v1alpha1.RepairPolicy, edit func(*v1alpha1.OperationPolicySpec)) func(*v1alpha1.OperationPolicySpec) {
	return func(s *v1alpha1.OperationPolicySpec) { edit(s); s.RepairPolicy = p }
}

func approving(classes ...v1alpha1.StepClass) func(*v1alpha1.OperationPolicySpec) {
	return func(s *v1alpha1.OperationPolicySpec) { s.Approval = &v1alpha1.ApprovalRule{Classes: classes} }
}

// question is about a step on a Tuesday of an object without approvals.
func question(step lifecycle.Step) policy.Question {
	return policy.Question{
		Object: orders, Step: step, Now: tuesday,
		FromSpec: func() bool { return true },
		Permit:   func() policy.ApprovalCheck { return policy.ApprovalCheck{} },
		Peers:    func() ([]policy.Peer, error) { return nil, nil },
	}
}

func TestJudge(t *testing.T) {
	monday := metav1.NewTime(tuesday.AddDate(0, 0, 6))
	past := metav1.NewTime(tuesday.AddDate(0, 0, -1))
	cases := map[string]struct {
		reason string
		rule   func(*v1alpha1.OperationPolicySpec)
		step   lifecycle.Step
		now    time.Time
		want   string // the message, empty if it passes
		until  time.Time
	}{
		"Closed":        {"a wish waits for its window", nights, restart, tuesday, "no maintenance window is open; the next opens Sat 2026-11-28 02:00 CET (Europe/Zurich)", time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)},
		"Open":          {"in the window it passes", nights, restart, saturday, "", time.Time{}},
		"Routine":       {"a routine step passes", nights, add, tuesday, "", time.Time{}},
		"Repair":        {"repairs pass windows", nights, mend, tuesday, "", time.Time{}},
		"RepairPass":    {"also if the policy says what is so anyway", held(v1alpha1.RepairPolicyPass, nights), mend, tuesday, "", time.Time{}},
		"RepairHold":    {"unless it says otherwise", held(v1alpha1.RepairPolicyHold, nights), mend, tuesday, "no maintenance window is open; the next opens Sat 2026-11-28 02:00 CET (Europe/Zurich)", time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)},
		"Frozen":        {"nothing moves", frozen(nil), restart, saturday, "frozen (sale) until its spec.freeze is removed", time.Time{}},
		"FrozenUntil":   {"for some time", frozen(&monday), restart, tuesday, "frozen (sale) until Mon 2026-11-30 12:00 UTC", monday.Time},
		"Thawed":        {"which ends by itself", frozen(&past), restart, tuesday, "", time.Time{}},
		"FrozenRepair":  {"repairs pass", frozen(nil), mend, tuesday, "", time.Time{}},
		"FrozenRoutine": {"so does a routine step of a change", frozen(nil), add, tuesday, "frozen (sale) until its spec.freeze is removed", time.Time{}},
		"FrozenFinish":  {"what was begun is finished", frozen(nil), finish, tuesday, "", time.Time{}},
		"FrozenDrift":   {"a routine repair passes", frozen(nil), adopt, tuesday, "", time.Time{}},
		"Unapproved":    {"it says what to do", approving("Disruptive"), restart, tuesday, "a step that is Disruptive needs an approval, and there is none; approve with `kubectl governor approve ring orders -n team`", time.Time{}},
		"OtherClass":    {"other classes need none", approving("Irreversible", "Destructive"), restart, tuesday, "", time.Time{}},
		"ApproveRepair": {"repairs need none", approving("Destructive"), mend, tuesday, "", time.Time{}},
		"Paused":        {"what pauses holds no step: there is none", func(s *v1alpha1.OperationPolicySpec) { s.Paused = true }, restart, tuesday, "", time.Time{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			q := question(c.step)
			q.Now = c.now
			v := policy.NewSet([]v1alpha1.OperationPolicy{made("p", c.rule)}).Judge(q)
			if c.want == "" && len(v.Refusals) == 0 {
				return
			}
			if len(v.Refusals) != 1 || v.Refusals[0].Message != c.want || !v.Refusals[0].Until.Equal(c.until) || v.Refusals[0].Policy != "p" {
				t.Errorf("%s: got %+v, want %q", c.reason, v.Refusals, c.want)
			}
		})
	}
}

// A freeze lets new objects come, and what repairs the world as the spec that worked last
// needs it.
func TestAFreezeHoldsOnlyChangesOfTheSpec(t *testing.T) {
	q := question(add)
	q.FromSpec = func() bool { return false }
	if v := policy.NewSet([]v1alpha1.OperationPolicy{made("p", frozen(nil))}).Judge(q); len(v.Refusals) > 0 {
		t.Errorf("it is held: %+v", v.Refusals)
	}
}

// If no approval can be created, the message names another remedy.
func TestAnApprovalCannotBeMadeInANamespaceThatGoes(t *testing.T) {
	for doomed, want := range map[bool]string{
		false: "there is none; approve with `kubectl governor approve ring orders -n team`",
		true: "there is none; none can be created, because the namespace is being deleted; " +
			"permit the deletion with `kubectl governor bypass ring orders -n team --reason REASON`",
	} {
		q := question(restart)
		q.NamespaceTerminating = func() bool { return doomed }
		v := policy.NewSet([]v1alpha1.OperationPolicy{made("p", approving("Disruptive"))}).Judge(q)
		if len(v.Refusals) != 1 || !strings.HasSuffix(v.Refusals[0].Message, want) {
			t.Errorf("got %+v, want %q", v.Refusals, want)
		}
	}
}

// A window that never opens is a fault, and holds all steps.
func TestInvalidPolicyHolds(t *testing.T) {
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("p", func(s *v1alpha1.OperationPolicySpec) {
		s.Windows = []v1alpha1.Window{{Schedule: "0 0 30 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
	})})
	v := set.Judge(question(restart))
	if len(v.Refusals) != 1 || !strings.Contains(v.Refusals[0].Message, `schedule "0 0 30 2 *" never comes`) {
		t.Errorf("got %+v", v.Refusals)
	}
}

// All that hold a step are named, and each says until when.
func TestTheStricterWinsAndAllAreNamed(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC))
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("sale", frozen(&until)), made("nights", nights), made("free", func(*v1alpha1.OperationPolicySpec) {})})
	v := set.Judge(question(restart))
	want := `The step Restart a-1 is held by the policy "nights": no maintenance window is open; the next opens Sat 2026-11-28 02:00 CET (Europe/Zurich); ` +
		`and by the policy "sale": frozen (sale) until Thu 2026-12-24 00:00 UTC`
	if got := lifecycle.Held(restart, v.Refusals...); got.Message != want || got.Reason != lifecycle.ReasonHeldByPolicy {
		t.Errorf("got %s", got)
	}
	for i, until := range []time.Time{time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC), until.Time} {
		if got := v.Refusals[i].Until; !got.Equal(until) {
			t.Errorf("%s: until %s, not %s", v.Refusals[i].Policy, got, until)
		}
	}
}

func TestBypassNamesPassedPolicies(t *testing.T) {
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("nights", nights), made("word", approving("Disruptive"))})
	q := question(restart)
	q.Bypass = "the disk is full"
	v := set.Judge(q)
	if len(v.Refusals) != 0 || len(v.Bypassed) != 2 {
		t.Errorf("got %+v", v)
	}
	q.Step = add
	if v := set.Judge(q); len(v.Bypassed) != 0 {
		t.Errorf("what passes anyway bypasses nothing: %+v", v)
	}
}

func TestAnApprovalLetsPass(t *testing.T) {
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("word", approving("Disruptive")), made("nights", nights)})
	given := &history.Approval{Name: "a", By: "ann"}
	q := question(restart)
	q.Permit = func() policy.ApprovalCheck { return policy.ApprovalCheck{Approval: given} }
	q.Now = saturday
	if v := set.Judge(q); len(v.Refusals) != 0 || v.Approval != given {
		t.Errorf("got %+v", v)
	}
	q.Now = tuesday
	if v := set.Judge(q); len(v.Refusals) != 1 || v.Refusals[0].Gate != policy.GateMaintenanceWindow {
		t.Errorf("an approval opens no window: %+v", v)
	}
	q.Permit = func() policy.ApprovalCheck {
		return policy.ApprovalCheck{Because: "the approval \"a\" is not valid (Expired)"}
	}
	if v := set.Judge(q); !strings.Contains(lifecycle.Held(restart, v.Refusals...).Message, "Expired") {
		t.Errorf("got %+v", v)
	}
}

func TestEffective(t *testing.T) {
	set := func(drift v1alpha1.DriftPolicy, failure v1alpha1.FailurePolicy, paused bool) func(*v1alpha1.OperationPolicySpec) {
		return func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy, s.OnFailure, s.Paused = drift, failure, paused }
	}
	got := policy.NewSet([]v1alpha1.OperationPolicy{
		made("b", set("Report", "Rollback", false)), made("a", set("Repair", "Halt", true)), made("c", set("", "", false)),
	}).Effective()
	want := policy.Effective{
		Names: []string{"a", "b", "c"}, PausedBy: []string{"a"},
		Drift: v1alpha1.DriftPolicyReport, DriftBy: []string{"b"}, OnFailure: v1alpha1.FailurePolicyHalt, OnFailureBy: []string{"a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	none := policy.Set(nil).Effective()
	if diff := cmp.Diff(policy.Effective{Drift: v1alpha1.DriftPolicyRepair, OnFailure: v1alpha1.FailurePolicyHalt}, none); diff != "" {
		t.Error(diff)
	}
	back := policy.NewSet([]v1alpha1.OperationPolicy{made("b", set("", "Rollback", false)), made("c", set("", "", false))}).Effective()
	if back.OnFailure != v1alpha1.FailurePolicyRollback {
		t.Errorf("a policy that says nothing forbids nothing: %+v", back)
	}
}

func wave(env string) v1alpha1.Wave {
	return v1alpha1.Wave{Name: env, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}}
}

func TestWaves(t *testing.T) {
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("waves", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Namespaces = []string{"team"}
		s.Canary = &v1alpha1.Canary{Waves: []v1alpha1.Wave{wave("test"), wave("stage")}, Soak: metav1.Duration{Duration: time.Hour}}
	})})
	peer := func(name, env string, settled bool, since time.Duration, stalled string) policy.Peer {
		return policy.Peer{
			Object:  policy.Object{Group: "g", Kind: "Ring", Namespace: "team", Name: name, Labels: map[string]string{"env": env}},
			Settled: settled, Since: tuesday.Add(-since), Stalled: stalled,
		}
	}
	good, soaking := peer("a", "test", true, 2*time.Hour, ""), peer("b", "stage", true, 20*time.Minute, "")
	busy, sick := peer("c", "test", false, time.Minute, ""), peer("d", "stage", false, time.Hour, "ImagePullBackOff")
	elsewhere := sick
	elsewhere.Namespace = "other"
	cases := map[string]struct {
		reason string
		env    string
		peers  []policy.Peer
		want   string
	}{
		"Done":      {"all waves before are well for long enough", "prod", []policy.Peer{good, elsewhere}, ""},
		"Empty":     {"waves without objects are done", "prod", nil, ""},
		"Soak":      {"the youngest counts", "prod", []policy.Peer{good, soaking}, `wave "stage" soaks until Tue 2026-11-24 12:40 UTC, when Ring team/b of it will have been as declared for 1h0m0s`},
		"Busy":      {"a change is under way", "prod", []policy.Peer{good, soaking, busy}, `wave "test" comes first, and Ring team/c of it is not as declared yet`},
		"Halt":      {"what is not well halts all, and is named", "prod", []policy.Peer{good, busy, sick}, `halted, because Ring team/d of wave "stage" is stalled: ImagePullBackOff`},
		"Same":      {"its own wave does not count", "stage", []policy.Peer{good, sick}, ""},
		"First":     {"the first wave does not wait", "test", []policy.Peer{sick, busy}, ""},
		"Unlabeled": {"an object in no wave is in the last", "", []policy.Peer{busy}, `wave "test" comes first, and Ring team/c of it is not as declared yet`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			q := question(restart)
			q.Object.Labels = map[string]string{"env": c.env}
			q.Peers = func() ([]policy.Peer, error) { return c.peers, nil }
			v := set.Judge(q)
			got := ""
			if len(v.Refusals) > 0 {
				got = v.Refusals[0].Message
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
			q.Step = mend
			if v := set.Judge(q); len(v.Refusals) > 0 {
				t.Errorf("repairs go before all waves: %+v", v.Refusals)
			}
		})
	}
	q := question(restart)
	q.Peers = func() ([]policy.Peer, error) { return nil, errors.New("away") }
	if v := set.Judge(q); len(v.Refusals) != 1 || !strings.Contains(v.Refusals[0].Message, "away") {
		t.Errorf("what is not known holds: %+v", v.Refusals)
	}
}

func TestBudgetSlots(t *testing.T) {
	per := func(per, label string) func(*v1alpha1.OperationPolicySpec) {
		return func(s *v1alpha1.OperationPolicySpec) {
			s.Budget = &v1alpha1.Budget{MaxDisrupted: 2, Scope: v1alpha1.BudgetScope(per), Label: label}
		}
	}
	set := policy.NewSet([]v1alpha1.OperationPolicy{
		made("a", per("", "")), made("b", per("Namespace", "")), made("c", per("Label", "env")), made("d", nights),
	})
	want := []policy.BudgetSlot{
		{Policy: "a", Pool: "a", Limit: 2, Among: "that it selects"},
		{Policy: "b", Pool: "b/namespace/team", Limit: 2, Among: "of the namespace team"},
		{Policy: "c", Pool: "c/label/prod", Limit: 2, Among: `with env="prod"`},
	}
	if diff := cmp.Diff(want, set.BudgetSlots(orders)); diff != "" {
		t.Error(diff)
	}
}

func TestConflictingPolicies(t *testing.T) {
	windows := func(all ...v1alpha1.Window) func(*v1alpha1.OperationPolicySpec) {
		return func(s *v1alpha1.OperationPolicySpec) { s.Windows = all }
	}
	hours := func(schedule string, h int) v1alpha1.Window {
		return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: time.Duration(h) * time.Hour}}
	}
	cases := map[string]struct {
		reason string
		a, b   func(*v1alpha1.OperationPolicySpec)
		want   string
	}{
		"Same":     {"equal values do not conflict", nights, nights, ""},
		"Silent":   {"an unset field does not conflict", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = "Report" }, nights, ""},
		"Drift":    {"the message names the winner", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = "Repair" }, func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = "Report" }, `spec.driftPolicy is Repair here and Report in the policy "b": Report wins.`},
		"Failure":  {"and of what fails", func(s *v1alpha1.OperationPolicySpec) { s.OnFailure = "Rollback" }, func(s *v1alpha1.OperationPolicySpec) { s.OnFailure = "Halt" }, `spec.onFailure is Rollback here and Halt in the policy "b": Halt wins.`},
		"Disjoint": {"windows that never meet", windows(hours("0 2 * * 6", 3)), windows(hours("0 5 * * 6", 3)), "never open at the same time"},
		"Touching": {"a minute is enough", windows(hours("0 2 * * 6", 3)), windows(hours("59 4 * * 6", 3)), ""},
		"Rarely":   {"some day they meet", windows(hours("0 2 1 * *", 1)), windows(hours("0 2 * * 1", 1)), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := policy.NewSet([]v1alpha1.OperationPolicy{made("a", c.a), made("b", c.b)})
			got := strings.Join(set[0].ConflictsWith(set[1]), " ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestPolicyConditions(t *testing.T) {
	never := func(s *v1alpha1.OperationPolicySpec) {
		s.Windows = []v1alpha1.Window{{Schedule: "0 0 30 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
	}
	byNamespace := func(s *v1alpha1.OperationPolicySpec) { s.Selector.NamespaceSelector = &metav1.LabelSelector{} }
	typo := func(s *v1alpha1.OperationPolicySpec) { s.Selector.Kinds = []string{"Rings"} }
	cases := map[string]struct {
		reason   string
		rule     func(*v1alpha1.OperationPolicySpec)
		standing policy.Usage
		want     []string
	}{
		"InEffect": {"all is well", nights, policy.Usage{Selected: 1}, []string{"Ready True InEffect: The policy is in effect."}},
		"Nothing":  {"no object is selected", nights, policy.Usage{}, []string{"Ready True SelectsNothing: No object has", "SelectsNothing True SelectsNothing: No object has"}},
		"Typo":     {"a kind that is not run", typo, policy.Usage{Runs: []string{"Ring"}}, []string{"Ready True SelectsNothing: The operator runs no Rings (spec.selector.kinds); it runs Ring.", "SelectsNothing True"}},
		"Against":  {"another one disagrees", nights, policy.Usage{Selected: 1, Against: []string{"No."}}, []string{"Ready True Conflicting: No.", "Conflicting True Conflicting: No."}},
		"Blind": {"labels of namespaces are not known", byNamespace, policy.Usage{Selected: 1, NamespacesUnknown: true}, []string{
			"Ready False NamespacesUnknown: spec.selector.namespaceSelector is not in effect",
		}},
		"Sees":     {"they are known", byNamespace, policy.Usage{Selected: 1}, []string{"Ready True InEffect: The policy is in effect."}},
		"Needless": {"nothing selects by them", nights, policy.Usage{Selected: 1, NamespacesUnknown: true}, []string{"Ready True InEffect: The policy is in effect."}},
		"Invalid":  {"what cannot be followed comes first", never, policy.Usage{}, []string{`Ready False Invalid: It cannot be followed as it is written: spec.windows[0].schedule "0 0 30 2 *" never comes`, "SelectsNothing True"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := made("p", c.rule)
			got := policy.New(&p).Conditions(c.standing)
			if len(got) != len(c.want) {
				t.Fatalf("%s: got %+v", c.reason, got)
			}
			for i, condition := range got {
				said := condition.Type + " " + string(condition.Status) + " " + condition.Reason + ": " + condition.Message
				if !strings.HasPrefix(said, c.want[i]) {
					t.Errorf("%s: got %q, want %q", c.reason, said, c.want[i])
				}
			}
		})
	}
}
