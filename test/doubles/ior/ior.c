/* A double of IOR 4.0.0 with its POSIX interface: it writes and reads the same files in the same order, with the same flags and reports.
 * Written from the tool's documentation and what it prints; see test/doubles/README.md. */
#define _GNU_SOURCE
#include "tool.h"

#define MIB 1048576.0

static const char *api = "POSIX", *name = "testFile";
static long long block = 1048576, transfer = 262144, segments = 1, iterations = 1;
static int per_process, reorder, fsync_after, write_phase, read_phase, keep, random_order, collective, direct, json;
static char *buffer;
static struct utsname machine;
static char command[1 << 14];

static const struct option options[] = {
    {'C', NULL, FLAG, &reorder, "reorderTasks -- changes task ordering for readback (useful to avoid client cache)"},
    {'c', NULL, FLAG, &collective, "collective -- Use collective I/O"},
    {'e', NULL, FLAG, &fsync_after, "fsync -- perform a fsync() operation at the end of each read/write phase"},
    {'F', NULL, FLAG, &per_process, "filePerProc -- file-per-process"},
    {'k', NULL, FLAG, &keep, "keepFile -- don't remove the test file(s) on program exit"},
    {'r', NULL, FLAG, &read_phase, "readFile -- read existing file"},
    {'w', NULL, FLAG, &write_phase, "writeFile -- write file"},
    {'z', NULL, FLAG, &random_order, "randomOffset -- access is to random, not sequential, offsets within a file"},
    {0, "posix.odirect", FLAG, &direct, "Direct I/O Mode"},
    {'a', NULL, TEXT, &api, "API for I/O [POSIX]"},
    {'b', NULL, SIZE, &block, "blockSize -- contiguous bytes to write per task  (e.g.: 8, 4k, 2m, 1g)"},
    {'i', NULL, NUMBER, &iterations, "repetitions -- number of repetitions of test"},
    {'o', NULL, TEXT, &name, "testFile -- full name for test"},
    {'O', NULL, SETTING, &json, "string of IOR directives (e.g. -O summaryFormat=JSON)"},
    {'s', NULL, NUMBER, &segments, "segmentCount -- number of segments"},
    {'t', NULL, SIZE, &transfer, "transferSize -- size of transfer in bytes (e.g.: 8, 4k, 2m, 1g)"},
    {0},
};

/* result is what one phase of one repetition took, in seconds: all is from the first open to the last close. */
struct result {
    int is_read;
    double bandwidth, rate, latency, opened, moved, closed, all;
};

static void stamp(char *out) {
    time_t now = time(NULL);
    strftime(out, 32, "%a %b %e %H:%M:%S %Y", localtime(&now));
}

/* words prints a size as IOR does: in the greatest unit that it reaches, from MiB on. */
static char *words(char *out, long long bytes) {
    static const struct { long long unit; const char *name; } units[] = {{1LL << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}};
    for (int i = 0; i < 3; i++) {
        if (bytes < units[i].unit) continue;
        sprintf(out, bytes % units[i].unit ? "%.2f %s" : "%.0f %s", (double)bytes / (double)units[i].unit, units[i].name);
        return out;
    }
    sprintf(out, "%lld bytes", bytes);
    return out;
}

static void file_name(char *out, int owner) {
    if (per_process) snprintf(out, PATH_MAX, "%s.%08d", name, owner);
    else snprintf(out, PATH_MAX, "%s", name);
}

/* offsets are the places of the transfers of a process: segment by segment, one block in each, in the file or its own file. */
static long long *offsets(int owner) {
    long long in_block = block / transfer, count = in_block * segments;
    long long *out = malloc(sizeof *out * (size_t)count);
    if (!out) fatal("out of memory");
    for (long long i = 0; i < count; i++) {
        long long segment = i / in_block, within = i % in_block * transfer;
        out[i] = per_process ? segment * block + within : (segment * size + owner) * block + within;
    }
    unsigned seed = (unsigned)owner + 1;
    for (long long i = count - 1; random_order && i > 0; i--) {
        long long j = (long long)(((double)rand_r(&seed) / ((double)RAND_MAX + 1)) * (double)(i + 1)), other = out[i];
        out[i] = out[j];
        out[j] = other;
    }
    return out;
}

/* shifted is whose data a process reads: with -C that of a process of the next node, or of the next process where there is one node. */
static int shifted(void) { return reorder ? (rank + (nodes > 1 ? per_node : 1)) % size : rank; }

static struct result move(int is_read) {
    char path[PATH_MAX];
    int owner = is_read ? shifted() : rank, flags = (is_read ? O_RDONLY : O_CREAT | O_RDWR) | (direct ? O_DIRECT : 0);
    long long *places = offsets(owner), count = block / transfer * segments;
    double each = 0, begin, own[3], ended[3], started[3];
    file_name(path, owner);
    begin = together();
    own[0] = MPI_Wtime();
    int fd = open(path, flags, 0664);
    if (fd < 0 && is_read) fatal("open64(\"%s\", %d) failed: %s, (aiori-POSIX.c:641)", path, flags, strerror(errno));
    if (fd < 0) fatal("open64(\"%s\", %d, 0664) failed. Error: %s, (aiori-POSIX.c:569)", path, flags, strerror(errno));
    double opened = MPI_Wtime();
    for (long long i = 0; i < count; i++) {
        double at = MPI_Wtime();
        for (long long done = 0; done < transfer;) {
            size_t left = (size_t)(transfer - done);
            ssize_t n = is_read ? pread(fd, buffer + done, left, places[i] + done) : pwrite(fd, buffer + done, left, places[i] + done);
            if (n < 0) fatal("%s(%d, %p, %zu) failed: %s, (aiori-POSIX.c:740)", is_read ? "read" : "write", fd, (void *)buffer, left, strerror(errno));
            if (n == 0) fatal("read() returned EOF prematurely, (aiori-POSIX.c:748)");
            done += n;
        }
        each += MPI_Wtime() - at;
    }
    if (fsync_after && !is_read && fsync(fd)) fatal("cannot fsync(%d): %s, (aiori-POSIX.c:770)", fd, strerror(errno));
    double moved = MPI_Wtime();
    if (close(fd)) fatal("close(%d) failed: %s, (aiori-POSIX.c:790)", fd, strerror(errno));
    double closed = MPI_Wtime();
    free(places);
    /* Each part from the first process that begins it to the last that ends it. */
    double firsts[3] = {own[0], opened, moved}, lasts[3] = {opened, moved, closed}, sum = 0;
    for (int i = 0; i < 3; i++) firsts[i] -= begin, lasts[i] -= begin;
    MPI_Allreduce(firsts, started, 3, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(lasts, ended, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&each, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double operations = (double)count * size;
    struct result r = {.is_read = is_read, .opened = ended[0] - started[0], .moved = ended[1] - started[1], .closed = ended[2] - started[2],
                       .all = ended[2] - started[0], .latency = sum / operations};
    r.bandwidth = operations * (double)transfer / MIB / r.all;
    r.rate = operations / r.moved;
    return r;
}

static void remove_files(void) {
    char path[PATH_MAX];
    file_name(path, rank);
    together();
    if ((per_process || rank == 0) && unlink(path)) printf("WARNING: unlink(\"%s\") failed: %s\n", path, strerror(errno));
    together();
}

/* column prints a number as IOR does, with fewer digits behind the point the greater it is. */
static void column(double value, const char *after) { printf("%-10.*f%s", value < 1 ? 6 : value < 3600 ? 2 : 0, value, after); }

static void row(struct result r, long long iteration) {
    printf("%-10s", r.is_read ? "read" : "write");
    column(r.bandwidth, " ");
    column(r.rate, " ");
    column(r.latency, "  ");
    column((double)block / 1024, " ");
    column((double)transfer / 1024, " ");
    column(r.opened, " ");
    column(r.moved, " ");
    column(r.closed, " ");
    column(r.all, " ");
    printf("%-4lld\n", iteration);
}

static void options_text(void) {
    char text[64];
    printf("\nOptions: \napi                 : %s\napiVersion          : \ntest filename       : %s\n", api, name);
    printf("access              : %s\ntype                : independent\nsegments            : %lld\n", per_process ? "file-per-process" : "single-shared-file", segments);
    printf("ordering in a file  : %s\n", random_order ? "random" : "sequential");
    printf("ordering inter file : %s\n", reorder ? "constant task offset" : "no tasks offsets");
    if (reorder) printf("task offset         : 1\n");
    printf("nodes               : %d\ntasks               : %d\nclients per node    : %d\nrepetitions         : %lld\n", nodes, size, per_node, iterations);
    printf("xfersize            : %s\n", words(text, transfer));
    printf("blocksize           : %s\n", words(text, block));
    printf("aggregate filesize  : %s\n\nResults: \n\n", words(text, block * segments * size));
    printf("access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n");
    printf("------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n");
}

static void begin_report(void) {
    char when[32], path[PATH_MAX], bytes[32], used[32], inodes[32], used_inodes[32], text[3][64];
    stamp(when);
    file_name(path, 0);
    /* A file that is not there yet lies in its directory. */
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", name);
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = 0;
    else strcpy(parent, ".");
    if (!json) {
        printf("IOR-4.0.0: MPI Coordinated Test of Parallel I/O\nBegan               : %s\nCommand line        : %s\nMachine             : %s %s\n",
               when, command, machine.sysname, machine.nodename);
        printf("TestID              : 0\nStartTime           : %s\n", when);
        if (room(parent, bytes, used, inodes, used_inodes))
            printf("Path                : %s\nFS                  : %s   Used FS: %s   Inodes: %s   Used Inodes: %s\n", path, bytes, used, inodes, used_inodes);
        options_text();
        fflush(stdout);
        return;
    }
    printf("{\n  \"Version\": \"4.0.0\", \n  \"Began\": \"%s\", \n  \"Command line\": \"%s\", \n  \"Machine\": \"%s %s\", \n", when, command, machine.sysname, machine.nodename);
    printf("  \"tests\": [\n    {\n    \"TestID\": 0, \n    \"StartTime\": \"%s\"", when);
    if (room(parent, bytes, used, inodes, used_inodes))
        printf("    , \"Path\": \"%s\",\"Capacity\": \"%s\", \"Used Capacity\": \"%s\",\"Inodes\": \"%s\", \"Used Inodes\" : \"%s\"\n", path, bytes, used, inodes, used_inodes);
    printf(", \n    \"Parameters\": {\n      \"testID\": 0, \n      \"api\": \"%s\", \n      \"platform\": \"%s(%s)\", \n      \"testFileName\": \"%s\", \n", api, machine.nodename, machine.sysname, name);
    printf("      \"nodes\": %d, \n      \"tasksPerNode\": %d, \n      \"repetitions\": %lld, \n      \"fsync\": %d, \n", nodes, per_node, iterations, fsync_after);
    printf("      \"readFile\": %d, \n      \"writeFile\": %d, \n      \"filePerProc\": %d, \n      \"reorderTasks\": %d, \n      \"randomOffset\": %d, \n", read_phase, write_phase, per_process, reorder, random_order);
    printf("      \"keepFile\": %d, \n      \"segmentCount\": %lld, \n      \"transferSize\": %lld, \n      \"blockSize\": %lld\n    }\n, \n", keep, segments, transfer, block);
    printf("    \"Options\": {\n      \"api\": \"%s\", \n      \"apiVersion\": \"\", \n      \"test filename\": \"%s\", \n      \"access\": \"%s\", \n      \"type\": \"independent\", \n", api, name, per_process ? "file-per-process" : "single-shared-file");
    printf("      \"segments\": %lld, \n      \"ordering in a file\": \"%s\", \n      \"ordering inter file\": \"%s\", \n", segments, random_order ? "random" : "sequential", reorder ? "constant task offset" : "no tasks offsets");
    if (reorder) printf("      \"task offset\": 1, \n");
    printf("      \"nodes\": %d, \n      \"tasks\": %d, \n      \"clients per node\": %d, \n      \"repetitions\": %lld, \n", nodes, size, per_node, iterations);
    printf("      \"xfersize\": \"%s\", \n      \"blocksize\": \"%s\", \n      \"aggregate filesize\": \"%s\"\n    }\n, \n    \"Results\": [\n",
           words(text[0], transfer), words(text[1], block), words(text[2], block * segments * size));
    fflush(stdout);
}

static void json_row(struct result r, int first) {
    if (!first) printf(", \n");
    printf("            {\n        \"access\": \"%s\", \n        \"bwMiB\": %.4f, \n        \"blockKiB\": %.4f, \n        \"xferKiB\": %.4f, \n", r.is_read ? "read" : "write",
           r.bandwidth, (double)block / 1024, (double)transfer / 1024);
    printf("        \"iops\": %.4f, \n        \"latency\": %.4f, \n        \"openTime\": %.4f, \n        \"wrRdTime\": %.4f, \n        \"closeTime\": %.4f, \n        \"totalTime\": %.4f\n      }\n",
           r.rate, r.latency, r.opened, r.moved, r.closed, r.all);
}

/* summary is a line over all repetitions of one operation. Operations are bandwidth in transfers, as IOR counts them there. */
static void summary(const struct result *results, int count, int is_read, int first) {
    double bandwidth[count], operations[count], seconds[count];
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (results[i].is_read != is_read) continue;
        bandwidth[n] = results[i].bandwidth;
        operations[n] = results[i].bandwidth * MIB / (double)transfer;
        seconds[n++] = results[i].all;
    }
    if (!n) return;
    const char *operation = is_read ? "read" : "write";
    double megabytes = (double)(block * segments * size) / MIB;
    if (!json) {
        printf("%-10s%10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.5f", operation, greatest(bandwidth, n), least(bandwidth, n), mean(bandwidth, n),
               deviation(bandwidth, n, 0), greatest(operations, n), least(operations, n), mean(operations, n), deviation(operations, n, 0), mean(seconds, n));
        printf("%11s%14s %5d %6d %3d %4lld %3d %5d %8d %9d %4d %6lld %8lld %8lld %9.1f %s %6d\n", "NA", "NA", 0, size, per_node, iterations, per_process,
               reorder, 1, 0, 0, segments, block, transfer, megabytes, api, 0);
        return;
    }
    printf("%s    {\n    \"operation\": \"%s\", \n    \"API\": \"%s\", \n    \"TestID\": 0, \n    \"ReferenceNumber\": 0, \n", first ? "" : ", \n", operation, api);
    printf("    \"segmentCount\": %lld, \n    \"blockSize\": %lld, \n    \"transferSize\": %lld, \n    \"numTasks\": %d, \n    \"tasksPerNode\": %d, \n    \"repetitions\": %lld, \n", segments, block, transfer, size, per_node, iterations);
    printf("    \"filePerProc\": %d, \n    \"reorderTasks\": %d, \n    \"taskPerNodeOffset\": 1, \n    \"reorderTasksRandom\": 0, \n    \"reorderTasksRandomSeed\": 0, \n", per_process, reorder);
    printf("    \"bwMaxMIB\": %.4f, \n    \"bwMinMIB\": %.4f, \n    \"bwMeanMIB\": %.4f, \n    \"bwStdMIB\": %.4f, \n", greatest(bandwidth, n), least(bandwidth, n), mean(bandwidth, n), deviation(bandwidth, n, 0));
    printf("    \"OPsMax\": %.4f, \n    \"OPsMin\": %.4f, \n    \"OPsMean\": %.4f, \n    \"OPsSD\": %.4f, \n    \"MeanTime\": %.4f, \n    \"xsizeMiB\": %.4f\n  }\n",
           greatest(operations, n), least(operations, n), mean(operations, n), deviation(operations, n, 0), mean(seconds, n), megabytes);
}

static void end_report(const struct result *results, int count) {
    char when[32];
    stamp(when);
    if (json) printf("]\n\n  }\n]\n, \n\"summary\": [\n");
    else
        printf("\nSummary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) "
               "Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n");
    summary(results, count, 0, 1);
    summary(results, count, 1, !write_phase);
    if (json) printf("]\n, \n\"Finished\": \"%s\"\n}\n", when);
    else printf("Finished            : %s\n", when);
}

static void check(void) {
    if (strcasecmp(api, "POSIX")) {
        printf("ERROR: Unrecognized I/O API, (utilities.c:321)\n");
        fflush(stdout);
        exit(1);
    }
    if (block < 1 || transfer < 1 || segments < 1 || iterations < 1) fatal("block size, transfer size, segments and repetitions must be positive, (ior.c:1460)");
    if (block % transfer) fatal("block size must be a multiple of transfer size, (ior.c:1490)");
    if (collective) fatal("collective not available in POSIX, (ior.c:1500)");
    if (direct && transfer % 512) fatal("transfer size must be a multiple of 512 for direct I/O, (aiori-POSIX.c:200)");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    parse(argc, argv, options);
    check();
    if (!write_phase && !read_phase) write_phase = read_phase = 1;
    count_nodes();
    uname(&machine);
    for (int i = 0, at = 0; i < argc && at < (int)sizeof command - 1; i++) at += snprintf(command + at, sizeof command - (size_t)at, "%s%s", i ? " " : "", argv[i]);
    if (posix_memalign((void **)&buffer, 4096, (size_t)transfer)) fatal("out of memory");
    memset(buffer, 'i', (size_t)transfer);
    struct result *results = calloc((size_t)iterations * 2, sizeof *results);
    int count = 0;
    if (rank == 0) begin_report();
    for (long long i = 0; i < iterations; i++) {
        for (int is_read = 0; is_read < 2; is_read++) {
            if (!(is_read ? read_phase : write_phase)) continue;
            struct result r = move(is_read);
            results[count++] = r;
            if (rank) continue;
            if (json) json_row(r, count == 1);
            else row(r, i);
            fflush(stdout);
        }
        if (!keep) remove_files();
    }
    if (rank == 0) end_report(results, count);
    MPI_Finalize();
    return 0;
}
