INSERT INTO t SELECT 2,m,itv,pt,vb,x,ln,c,ca,cr FROM t;
