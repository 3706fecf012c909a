INSERT INTO t SELECT id+10,n,nn,vb,ov,iv,bx,m,itv,pt,f,u,en,ch,vc,js FROM t;
