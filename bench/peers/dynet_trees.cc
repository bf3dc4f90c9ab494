/* dynet_trees MODEL RAW [MIB]: the tree models of examples/ in DyNet with autobatching, on the data that common.py
 * wrote to RAW.
 *
 * Like torch_trees.py it joins gates into one matrix and reads requests from standard input. A time
 * includes building the graph of the minibatch and computing it with its outputs, since DyNet needs a new
 * graph for new structures. DyNet computes on one thread. Its pools have MIB mebibytes at first, 1024 unless said, and grow
 * when they are full. */
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/init.h>
#include <dynet/param-init.h>
#include <dynet/tensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace dynet;
using std::string;
using std::vector;

[[noreturn]] static void give_up(const string &what)
{
	std::cerr << "dynet_trees: " << what << "\n";
	exit(1);
}

/* --- the data of common.py --- */

struct Matrix {
	int rows, columns;
	vector<float> values; /* row by row */
};

struct TreeNode {
	unsigned word;
	vector<int> children;
};

using Tree = vector<TreeNode>;

struct Raw {
	std::map<string, Matrix> tensors;
	vector<Tree> trees;
};

static unsigned read_number(std::istream &from)
{
	uint32_t n;
	if (!from.read(reinterpret_cast<char *>(&n), sizeof n))
		give_up("the file is too short");
	return n;
}

static Matrix read_matrix(std::istream &from)
{
	Matrix m{int(read_number(from)), int(read_number(from)), {}};
	m.values.resize(size_t(m.rows) * m.columns);
	if (!from.read(reinterpret_cast<char *>(m.values.data()), m.values.size() * sizeof(float)))
		give_up("the file is too short");
	return m;
}

static Tree read_tree(std::istream &from)
{
	Tree tree(read_number(from));
	for (TreeNode &node : tree) {
		node.word = read_number(from);
		node.children.resize(read_number(from));
		for (int &child : node.children)
			child = read_number(from);
	}
	return tree;
}

static Raw read_raw(const string &path)
{
	std::ifstream from(path, std::ios::binary);
	if (!from)
		give_up("no file " + path);
	Raw raw;
	for (unsigned n = read_number(from); n > 0; n--) {
		string name(read_number(from), ' ');
		from.read(&name[0], name.size());
		raw.tensors[name] = read_matrix(from);
	}
	raw.trees.resize(read_number(from));
	for (Tree &tree : raw.trees)
		tree = read_tree(from);
	return raw;
}

/* --- weights --- */

static const Matrix &find_tensor(const Raw &raw, const string &name)
{
	auto found = raw.tensors.find(name);
	if (found == raw.tensors.end())
		give_up("no tensor " + name);
	return found->second;
}

/* Joins the rows of several tensors into one matrix. */
static Matrix join_rows(const Raw &raw, const vector<string> &names)
{
	Matrix all{0, find_tensor(raw, names[0]).columns, {}};
	for (const string &name : names) {
		const Matrix &m = find_tensor(raw, name);
		all.rows += m.rows;
		all.values.insert(all.values.end(), m.values.begin(), m.values.end());
	}
	return all;
}

/* Names from a pattern: "U_?" for "iou" gives U_i, U_o, U_u. */
static vector<string> names_of(const string &pattern, const vector<string> &gates)
{
	vector<string> names;
	for (const string &gate : gates)
		names.push_back(string(pattern).replace(pattern.find('?'), 1, gate));
	return names;
}

/* Adds a matrix as a parameter; DyNet stores matrices column by column. */
static Parameter add_parameter(ParameterCollection &to, const Matrix &m)
{
	Parameter p = to.add_parameters(m.columns == 1 ? Dim({unsigned(m.rows)}) : Dim({unsigned(m.rows), unsigned(m.columns)}));
	vector<float> values(m.values.size());
	for (int r = 0; r < m.rows; r++)
		for (int c = 0; c < m.columns; c++)
			values[size_t(c) * m.rows + r] = m.values[size_t(r) * m.columns + c];
	TensorTools::set_elements(p.get_storage().values, values);
	return p;
}

static LookupParameter add_table(ParameterCollection &to, const Matrix &m)
{
	LookupParameter p = to.add_lookup_parameters(m.rows, {unsigned(m.columns)});
	for (int r = 0; r < m.rows; r++)
		p.initialize(r, vector<float>(&m.values[size_t(r) * m.columns], &m.values[size_t(r) * m.columns] + m.columns));
	return p;
}

/* --- models --- */

struct State {
	Expression h, c;
};

/* The weights of a model in the current graph, and its cell, which computes a node's state from those of
 * its children. */
struct TreeModel {
	ComputationGraph *graph = nullptr;
	LookupParameter embedding;
	unsigned words = 0, d = 0;
	bool inner_words = false, everywhere = false, has_output = false;
	ParameterCollection all;
	std::map<string, Parameter> parameter;
	std::map<string, Expression> w;
	std::function<State(TreeModel &, const Expression &x, const vector<State> &children)> cell;
};

static Expression slice_of(TreeModel &m, const Expression &a, unsigned gate, unsigned gates = 1)
{
	return pick_range(a, gate * m.d, (gate + gates) * m.d);
}

static Expression sum_of(const vector<State> &children)
{
	vector<Expression> rows;
	for (const State &child : children)
		rows.push_back(child.h);
	return sum(rows);
}

static State treelstm_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	if (k.empty()) {
		Expression a = affine_transform({m.w["leaf_b"], m.w["leaf_w"], x}), s = logistic(slice_of(m, a, 0, 2));
		Expression c = cmult(slice_of(m, s, 0), tanh(slice_of(m, a, 2)));
		return {cmult(slice_of(m, s, 1), tanh(c)), c};
	}
	Expression a = affine_transform({m.w["node_b"], m.w["node_left"], k[0].h, m.w["node_right"], k[1].h});
	Expression s = logistic(slice_of(m, a, 0, 4));
	Expression c = cmult(slice_of(m, s, 0), tanh(slice_of(m, a, 4))) + cmult(slice_of(m, s, 1), k[0].c) + cmult(slice_of(m, s, 2), k[1].c);
	return {cmult(slice_of(m, s, 3), tanh(c)), c};
}

static State childsum_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	Expression a = affine_transform({m.w["x_b"], m.w["x_w"], x}), iou = slice_of(m, a, 0, 3);
	if (!k.empty())
		iou = affine_transform({iou, m.w["sum_w"], sum_of(k)});
	Expression s = logistic(slice_of(m, iou, 0, 2)), c = cmult(slice_of(m, s, 0), tanh(slice_of(m, iou, 2))), wf = slice_of(m, a, 3);
	for (const State &child : k)
		c = c + cmult(logistic(affine_transform({wf, m.w["f_w"], child.h})), child.c);
	return {cmult(slice_of(m, s, 1), tanh(c)), c};
}

static State gru_cell(TreeModel &m, const Expression &x, const vector<State> &k, bool keeps)
{
	if (k.empty()) {
		Expression a = affine_transform({m.w["x_b"], m.w["x_w"], x}), n = tanh(slice_of(m, a, 1));
		return {n - cmult(logistic(slice_of(m, a, 0)), n), n};
	}
	Expression s = sum_of(k), g = logistic(affine_transform({m.w["gate_b"], m.w["gate_w"], s})), z = slice_of(m, g, 1);
	Expression n = tanh(affine_transform({m.w["n_b"], m.w["n_w"], cmult(slice_of(m, g, 0), s)}));
	Expression h = keeps ? n + cmult(z, s - n) : n - cmult(z, n);
	return {h, h};
}

static State treegru_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	return gru_cell(m, x, k, true);
}

static State simpletreegru_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	return gru_cell(m, x, k, false);
}

static State treernn_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	Expression h = k.empty() ? tanh(affine_transform({m.w["b"], m.w["x_w"], x}))
				 : tanh(affine_transform({m.w["b"], m.w["w"], sum_of(k)}));
	return {h, h};
}

static State treefc_cell(TreeModel &m, const Expression &x, const vector<State> &k)
{
	Expression h = k.empty() ? x : rectify(affine_transform({m.w["b"], m.w["w"], concatenate({k[0].h, k[1].h})}));
	return {h, h};
}

/* A joined weight: its name here, the pattern of the tensors' names, the gates. */
struct Join {
	string name, pattern;
	vector<string> gates;
};

static const vector<string> iou = {"i", "o", "u"}, node_gates = {"i", "fl", "fr", "o", "u"}, one = {""};

static const struct Kind {
	const char *name;
	State (*cell)(TreeModel &, const Expression &, const vector<State> &);
	bool inner_words, everywhere, has_output;
	vector<Join> joins;
} kinds[] = {
    {"treelstm", treelstm_cell, false, true, true,
     {{"leaf_w", "leaf.W_?", iou}, {"leaf_b", "leaf.b_?", iou}, {"node_left", "node.U_?_left", node_gates},
      {"node_right", "node.U_?_right", node_gates}, {"node_b", "node.b_?", node_gates}}},
    {"childsum", childsum_cell, true, false, true,
     {{"x_w", "W_?", {"i", "o", "u", "f"}}, {"x_b", "b_?", {"i", "o", "u", "f"}}, {"sum_w", "U_?", iou}, {"f_w", "U_f?", one}}},
    {"treegru", treegru_cell, false, false, true,
     {{"x_w", "W_?", {"z", "n"}}, {"x_b", "b_?", {"z", "n"}}, {"gate_w", "U_?", {"r", "z"}}, {"gate_b", "b_?", {"r", "z"}},
      {"n_w", "U_n?", one}, {"n_b", "b_n?", one}}},
    {"simpletreegru", simpletreegru_cell, false, false, true,
     {{"x_w", "W_?", {"z", "n"}}, {"x_b", "b_?", {"z", "n"}}, {"gate_w", "U_?", {"r", "z"}}, {"gate_b", "b_?", {"r", "z"}},
      {"n_w", "U_n?", one}, {"n_b", "b_n?", one}}},
    {"treernn", treernn_cell, false, false, true, {{"x_w", "W?", one}, {"w", "U?", one}, {"b", "b?", one}}},
    {"treefc", treefc_cell, false, false, false, {{"w", "W?", one}, {"b", "b?", one}}},
};

static void make_model(TreeModel &m, const string &name, const Raw &raw)
{
	for (const Kind &kind : kinds) {
		if (name != kind.name)
			continue;
		for (const Join &j : kind.joins)
			m.parameter[j.name] = add_parameter(m.all, join_rows(raw, names_of(j.pattern, j.gates)));
		m.cell = kind.cell;
		m.inner_words = kind.inner_words;
		m.everywhere = kind.everywhere;
		m.has_output = kind.has_output;
		if (m.has_output) {
			m.parameter["output_w"] = add_parameter(m.all, find_tensor(raw, "output.weight"));
			m.parameter["output_b"] = add_parameter(m.all, find_tensor(raw, "output.bias"));
		}
		const Matrix &table = find_tensor(raw, "embedding.weight"), &last = find_tensor(raw, m.has_output ? "output.weight" : "W");
		m.embedding = add_table(m.all, table);
		m.words = table.rows;
		m.d = m.has_output ? last.columns : last.rows;
		return;
	}
	give_up("no model " + name);
}

/* --- running --- */

static Expression output_of(TreeModel &m, const State &s)
{
	return m.has_output ? affine_transform({m.w["output_b"], m.w["output_w"], s.h}) : s.h;
}

/* Adds a tree to the graph and returns the output of its root. */
static Expression build_tree(TreeModel &m, const Tree &tree)
{
	vector<State> states;
	Expression output;
	for (size_t i = 0; i < tree.size(); i++) {
		vector<State> children;
		for (int child : tree[i].children)
			children.push_back(states[child]);
		Expression x;
		if (m.inner_words || children.empty())
			x = const_lookup(*m.graph, m.embedding, tree[i].word % m.words);
		states.push_back(m.cell(m, x, children));
		if (m.everywhere || i + 1 == tree.size())
			output = output_of(m, states.back());
	}
	return output;
}

/* Returns the outputs of the roots, one after the other. */
static vector<float> run_minibatch(TreeModel &m, const Raw &raw, size_t first, size_t count)
{
	ComputationGraph graph;
	vector<Expression> outputs;
	vector<float> all;
	m.graph = &graph;
	for (auto &p : m.parameter)
		m.w[p.first] = const_parameter(graph, p.second);
	for (size_t i = 0; i < count; i++)
		outputs.push_back(build_tree(m, raw.trees[(first + i) % raw.trees.size()]));
	graph.forward(outputs.back());
	for (Expression &e : outputs)
		for (float value : as_vector(e.value()))
			all.push_back(value);
	return all;
}

static void answer_times(TreeModel &m, const Raw &raw, size_t first, size_t count, long repeats)
{
	run_minibatch(m, raw, first, count);
	for (long i = 0; i < repeats; i++) {
		auto begin = std::chrono::steady_clock::now();
		run_minibatch(m, raw, first, count);
		std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
		printf("%s%.1f", i ? " " : "", took.count());
	}
	putchar('\n');
}

static void answer_root(TreeModel &m, const Raw &raw, size_t first, size_t count)
{
	const char *before = "";
	for (float value : run_minibatch(m, raw, first, count)) {
		printf("%s%.9g", before, value);
		before = " ";
	}
	putchar('\n');
}

/* The largest resident set of this process so far [KiB]. */
static long peak_memory()
{
	std::ifstream from("/proc/self/status");
	long peak = 0;
	for (string line; !peak && std::getline(from, line);)
		sscanf(line.c_str(), "VmHWM: %ld kB", &peak);
	return peak;
}

int main(int argc, char **argv)
{
	long start = peak_memory();
	if (argc < 3 || argc > 4)
		give_up("usage: dynet_trees MODEL RAW [MIB]");
	DynetParams parameters;
	parameters.autobatch = 1;
	parameters.mem_descriptor = argc > 3 ? argv[3] : "1024";
	initialize(parameters);
	Raw raw = read_raw(argv[2]);
	TreeModel m;
	make_model(m, argv[1], raw);
	for (string line; std::getline(std::cin, line); fflush(stdout)) {
		size_t first, count;
		long repeats;
		if (sscanf(line.c_str(), "run %zu %zu %ld", &first, &count, &repeats) == 3 && count > 0)
			answer_times(m, raw, first, count, repeats);
		else if (sscanf(line.c_str(), "root %zu %zu", &first, &count) == 2 && count > 0)
			answer_root(m, raw, first, count);
		else if (line == "memory")
			printf("%ld %ld\n", start, peak_memory());
		else
			puts("error: 'run FIRST COUNT REPEATS', 'root FIRST COUNT' or 'memory' is wanted");
	}
}
