# There are four workspaces, and none of a task.
vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
    vtc.workspace_alloc(task, 100);
}
