/* What the doubles of mdtest and IOR share: options, failures, figures and the words for them, as the tools of 4.0.0 print them. */
#ifndef TOOL_H
#define TOOL_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int rank, size, per_node, nodes;
static char node_map[1 << 16];

/* An option of one letter, or a long one: a flag, a number (with k, m, g, t where it is a size) or a text. */
struct option {
    char letter;
    const char *name;
    enum { FLAG, NUMBER, SIZE, TEXT, SETTING } kind;
    void *value;
    const char *help;
};

/* fatal ends all processes, as the tools do when an operation fails. */
static void __attribute__((format(printf, 1, 2))) fatal(const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    printf("ERROR: ");
    vprintf(form, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, -1);
    exit(255);
}

/* count_nodes finds out how the processes lie: nodes, processes on the first one, and a digit for each, 1 where it is on the first. */
static void count_nodes(void) {
    char own[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    /* The name of the host, which is the pod's in a cluster. */
    gethostname(own, sizeof own - 1);
    length = sizeof own;
    char *all = calloc((size_t)size, (size_t)length);
    MPI_Allgather(own, length, MPI_CHAR, all, length, MPI_CHAR, MPI_COMM_WORLD);
    nodes = per_node = 0;
    for (int i = 0; i < size; i++) {
        int seen = 0;
        for (int j = 0; j < i && !seen; j++) seen = strcmp(all + (size_t)j * length, all + (size_t)i * length) == 0;
        nodes += !seen;
        int first = strcmp(all, all + (size_t)i * length) == 0;
        per_node += first;
        if (i < (int)sizeof node_map - 1) node_map[i] = first ? '1' : '0';
    }
    free(all);
}

static int number(const char *text, int with_unit, long long *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text) return 0;
    if (with_unit && *end) {
        static const char units[] = "kmgt";
        const char *unit = strchr(units, *end | 32);
        if (!unit) return 0;
        value <<= 10 * (unit - units + 1);
        end++;
    }
    *out = value;
    return *end == 0;
}

static void usage(const char *program, const struct option *options) {
    printf("Synopsis %s\n\nFlags\n", program);
    for (const struct option *o = options; o->letter || o->name; o++) {
        if (o->kind != FLAG) continue;
        if (o->letter) printf("  -%-29c %s\n", o->letter, o->help);
        else printf("  --%-28s %s\n", o->name, o->help);
    }
    printf("\nOptional arguments\n");
    for (const struct option *o = options; o->letter || o->name; o++) {
        if (o->kind != FLAG && o->letter) printf("  -%c=%-27s %s\n", o->letter, "", o->help);
    }
}

/* setting takes name=value of -O; only the form of the summary is known. */
static int setting(const char *text, void *value) {
    static const char name[] = "summaryFormat=";
    if (strncasecmp(text, name, sizeof name - 1)) {
        const char *end = strchr(text, '=');
        printf("Unrecognized parameter \"%.*s\"\n", (int)(end ? end - text : (long)strlen(text)), text);
        return 0;
    }
    text += sizeof name - 1;
    if (!strcasecmp(text, "JSON")) *(int *)value = 1;
    else if (!strcasecmp(text, "default")) *(int *)value = 0;
    else {
        printf("Unknown summaryFormat\n");
        return 0;
    }
    return 1;
}

/* parse reads the options, and ends with 1 and the tool's words when one is unknown or has no good value. */
static void parse(int argc, char **argv, const struct option *options) {
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        const struct option *found = NULL;
        for (const struct option *o = options; (o->letter || o->name) && !found; o++) {
            if (o->letter && word[0] == '-' && word[1] == o->letter && (word[2] == 0 || word[2] == '=')) {
                found = o;
                if (word[2]) value = word + 3;
            } else if (o->name && !strncmp(word, "--", 2) && !strcmp(word + 2, o->name)) {
                found = o;
            }
        }
        if (!found) {
            printf("Error invalid argument: %s\n", word);
            bad = 1;
            continue;
        }
        if (found->kind == FLAG) {
            ++*(int *)found->value;
            continue;
        }
        if (!value && i + 1 == argc) {
            printf("Error, argument missing for option %c\n", found->letter);
            fflush(stdout);
            exit(1);
        }
        if (!value) value = argv[++i];
        if (found->kind == TEXT) {
            *(const char **)found->value = value;
        } else if (found->kind == SETTING) {
            bad |= 2 * !setting(value, found->value);
        } else if (!number(value, found->kind == SIZE, found->value)) {
            printf("Error invalid argument: %s\n", value);
            bad = 1;
        }
    }
    if (!bad) return;
    if (bad & 1) {
        printf("Invalid options\n");
        usage(argv[0], options);
    }
    fflush(stdout);
    exit(1);
}

/* room fills in what the tools say of a filesystem, and is 0 when they can't. */
static int room(const char *path, char *bytes, char *used, char *inodes, char *used_inodes) {
    struct statvfs s;
    if (statvfs(path, &s)) {
        printf("POSIX couldn't call statvfs: %s\nWARNING: Backend returned error during statfs\n", strerror(errno));
        return 0;
    }
    double total = (double)s.f_blocks * (double)s.f_frsize, unit = 1 << 30;
    const char *name = "GiB";
    if (total > unit * 1024) unit *= 1024, name = "TiB";
    sprintf(bytes, "%.1f %s", total / unit, name);
    sprintf(used, "%2.1f%%", s.f_blocks ? 100 * (1 - (double)s.f_bfree / (double)s.f_blocks) : 0);
    sprintf(inodes, "%.1f Mi", (double)s.f_files / (1 << 20));
    sprintf(used_inodes, "%2.1f%%", s.f_files ? 100 * (1 - (double)s.f_ffree / (double)s.f_files) : 0);
    return 1;
}

static double least(const double *values, int count) {
    double out = values[0];
    for (int i = 1; i < count; i++) out = fmin(out, values[i]);
    return out;
}

static double greatest(const double *values, int count) {
    double out = values[0];
    for (int i = 1; i < count; i++) out = fmax(out, values[i]);
    return out;
}

static double mean(const double *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    return sum / count;
}

/* deviation divides by count-less: mdtest takes the values for a sample (1), IOR for all there are (0). */
static double deviation(const double *values, int count, int less) {
    double sum = 0, middle = mean(values, count);
    if (count < 2) return 0;
    for (int i = 0; i < count; i++) sum += (values[i] - middle) * (values[i] - middle);
    return sqrt(sum / (count - less));
}

/* together is the time when all processes have come here. */
static double together(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

#endif
