package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/*/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// stat are the fields of /proc/PID/stat from the state on: [0] is field 3.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The name of the program, in parentheses, may hold anything.
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])), nil
}

// cpu is the time that a process, its threads and its ended and awaited children
// have spent on a core.
func cpu(pid int) time.Duration {
	fields, err := stat(pid)
	if err != nil || len(fields) < 15 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:15] { // utime stime cutime cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// family is a process and its children. A PostgreSQL is one.
func family(parent int) []int {
	pids := []int{parent}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if fields, err := stat(pid); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func familyCPU(parent int) time.Duration {
	var sum time.Duration
	for _, pid := range family(parent) {
		sum += cpu(pid)
	}
	return sum
}

// memory is a line of /proc/PID/status in bytes: VmRSS is what is resident, VmHWM
// the most that ever was.
func memory(pid int, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", name, pid)
}

// machineCPU is the time that all cores together have been busy, stolen time
// included: what others take from us on a shared machine.
func machineCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	var ticks int64
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the label, idle, iowait, guests
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// machine says in one line what this runs on.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, Linux %s, %s, load %s", model, runtime.NumCPU(),
		strings.TrimSpace(string(kernel)), runtime.Version(), firstField(string(load)))
}

func firstField(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return first
}

var errNoProc = errors.New("this needs Linux: /proc is not there")

func checkProc() error {
	if _, err := os.Stat("/proc/self/stat"); errors.Is(err, fs.ErrNotExist) {
		return errNoProc
	}
	return nil
}
