package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// build makes sure of every target and gives their folders, in order.
func (c Cache) build(ctx context.Context, targets []target) ([]string, error) {
	if err := makeDir(c.Dir); err != nil {
		return nil, err
	}
	version, err := goVersion(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	var missing []plan
	for _, t := range targets {
		p := c.plan(t, version)
		dirs = append(dirs, p.bin)
		if !p.built() {
			p.row = len(missing)
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return dirs, nil
	}
	return dirs, c.buildMissing(ctx, missing)
}

// buildMissing downloads one target after another, and compiles each while
// the next is being downloaded. Compiling two at once would gain nothing: the
// go command keeps every core busy by itself.
func (c Cache) buildMissing(ctx context.Context, missing []plan) error {
	show := newProgress(c.Out, missing)
	defer show.close()
	var jobs []*job
	for _, p := range missing {
		j := &job{plan: p, show: show}
		defer j.release()
		jobs = append(jobs, j)
	}
	group, ctx := errgroup.WithContext(ctx)
	downloaded := make(chan *job, len(jobs))
	group.Go(func() error {
		defer close(downloaded)
		for _, j := range jobs {
			if err := j.download(ctx); err != nil {
				return j.fail(err)
			}
			downloaded <- j
		}
		return nil
	})
	group.Go(func() error {
		for j := range downloaded {
			if err := j.compile(ctx); err != nil {
				return j.fail(err)
			}
		}
		return nil
	})
	return group.Wait()
}

// job is the building of one plan.
type job struct {
	plan
	show     *progress
	held     *os.File // the lock
	log      *os.File
	finished bool
}

// download takes the lock and fetches the modules that the programs need.
func (j *job) download(ctx context.Context) error {
	if err := j.begin(ctx); err != nil || j.finished {
		return err
	}
	j.show.set(j.row, downloading)
	if err := j.writeSource(); err != nil {
		return err
	}
	modules := counter(isDownload, func(n int) { j.show.count(j.row, n, "modules") })
	if j.prepare != nil {
		if err := j.goCommand().run(ctx, "mod", modules, j.prepare...); err != nil {
			return err
		}
	}
	// Loading the packages downloads what they import, and no module beyond.
	list := append([]string{"list", "-deps"}, j.listFlags()...)
	if err := j.goCommand().run(ctx, "readonly", modules, append(list, j.pattern)...); err != nil {
		return err
	}
	j.show.set(j.row, downloaded)
	return nil
}

// listFlags are the build flags that go list understands too.
func (j *job) listFlags() []string {
	var flags []string
	for _, flag := range j.flags {
		if strings.HasPrefix(flag, "-tags=") {
			flags = append(flags, flag)
		}
	}
	return flags
}

func (j *job) begin(ctx context.Context) (err error) {
	if j.held, err = lock(ctx, j.lock, func() { j.show.set(j.row, locked) }); err != nil {
		return err
	}
	if j.built() { // by the previous holder of the lock
		j.end()
		return nil
	}
	if err := makeDir(filepath.Dir(j.plan.log)); err != nil {
		return err
	}
	j.log, err = os.Create(j.plan.log)
	return err
}

// compile builds the programs into a folder beside their own, and gives it
// its name only when all are there.
func (j *job) compile(ctx context.Context) error {
	if j.finished {
		return nil
	}
	j.show.set(j.row, compiling)
	tmp := filepath.Join(j.src, "build")
	// An earlier build that was killed may have left it.
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	packages := counter(isPackage, func(n int) { j.show.count(j.row, n, "packages") })
	args := append([]string{"build", "-v"}, j.flags...)
	args = append(args, "-o", tmp+"/", j.pattern)
	if err := j.goCommand().run(ctx, "readonly", packages, args...); err != nil {
		return err
	}
	if err := j.install(tmp); err != nil {
		return err
	}
	j.end()
	return nil
}

func (j *job) goCommand() goCommand { return goCommand{dir: j.src, log: j.log} }

// end lets others have the result.
func (j *job) end() {
	j.finished = true
	j.show.set(j.row, done)
	j.release()
}

// release gives back the lock, whatever has become of the job.
func (j *job) release() {
	for _, f := range []*os.File{j.log, j.held} {
		if f != nil {
			_ = f.Close() // twice does no harm
		}
	}
}

func (j *job) fail(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		j.show.set(j.row, stopped)
		return err
	}
	j.show.set(j.row, failed)
	return fmt.Errorf("building %s: %w\n  everything the go command said: %s", j.title(), err, j.plan.log)
}

// counter counts the lines of one kind.
func counter(kind func(string) bool, tell func(int)) func(string) {
	n := 0
	return func(line string) {
		if kind(line) {
			n++
			tell(n)
		}
	}
}

// lock waits for the file's lock, which its closing, or the end of this
// process, gives back. busy is called if another process holds it.
func lock(ctx context.Context, path string, busy func()) (*os.File, error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if first {
			busy()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
