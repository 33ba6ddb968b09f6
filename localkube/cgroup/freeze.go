package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Freeze stops every process of the group and of the groups inside it where it is, and returns when they stand still.
func (g Group) Freeze() error { return g.setFrozen(true) }

// Thaw lets the processes of a frozen group go on; a group that is not frozen is left as it is.
func (g Group) Thaw() error { return g.setFrozen(false) }

// Frozen tells whether the group stands still.
func (g Group) Frozen() bool {
	frozen := false
	_ = each(func(h hierarchy) error {
		if file, ok := h.freezer(g); ok {
			data, _ := os.ReadFile(file)
			state := strings.TrimSpace(string(data))
			frozen = frozen || state == "FROZEN" || state == "FREEZING" || state == "1"
		}
		return nil
	})
	return frozen
}

func (g Group) setFrozen(frozen bool) error {
	return each(func(h hierarchy) error {
		file, ok := h.freezer(g)
		if !ok {
			return nil
		}
		if err := os.WriteFile(file, []byte(h.freezerWord(frozen)), 0); err != nil {
			return err
		}
		return h.awaitFrozen(g, frozen)
	})
}

// freezer is the file that freezes g in this hierarchy, if it can. A hybrid machine has a freezer in both versions: there
// the one of version 1 is used, because runc uses it too.
func (h hierarchy) freezer(g Group) (string, bool) {
	for _, name := range []string{"freezer.state", "cgroup.freeze"} {
		file := filepath.Join(h.dir(g), name)
		if _, err := os.Stat(file); err == nil && h.unified == (name == "cgroup.freeze") {
			return file, !h.unified || !versionOneFreezes(g)
		}
	}
	return "", false
}

func versionOneFreezes(g Group) bool {
	found, _ := hierarchies()
	for _, h := range found {
		if _, err := os.Stat(filepath.Join(h.dir(g), "freezer.state")); err == nil {
			return true
		}
	}
	return false
}

func (h hierarchy) freezerWord(frozen bool) string {
	switch {
	case h.unified && frozen:
		return "1"
	case h.unified:
		return "0"
	case frozen:
		return "FROZEN"
	default:
		return "THAWED"
	}
}

func (h hierarchy) awaitFrozen(g Group, frozen bool) error {
	for pause := time.Millisecond; pause < 4*time.Second; pause *= 2 {
		if h.isFrozen(g) == frozen {
			return nil
		}
		time.Sleep(pause)
	}
	return errors.New("group " + string(g) + " does not freeze: a process in it is stuck in the kernel")
}

func (h hierarchy) isFrozen(g Group) bool {
	if h.unified {
		events, _ := os.ReadFile(filepath.Join(h.dir(g), "cgroup.events"))
		return strings.Contains(string(events), "frozen 1")
	}
	state, _ := os.ReadFile(filepath.Join(h.dir(g), "freezer.state"))
	return strings.TrimSpace(string(state)) == "FROZEN"
}
